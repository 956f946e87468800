#include "reactor/hot_list.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace cairn {
namespace {

class Source final : public HotSource {
 public:
  Source(std::string* log, char name) : log_(log), name_(name) {}
  bool ready = false;
  HotList* list = nullptr;
  Source* removes = nullptr;

 private:
  bool try_hot() override {
    log_->push_back(name_);
    if (removes != nullptr) list->remove(*removes);
    return ready;
  }
  void cool_down() override {
    log_->push_back(name_);
    log_->push_back('*');
  }

  std::string* log_;
  char name_;
};

TEST(HotList, TriesEachUntilItSucceedsOrCoolsDown) {
  std::string log;
  HotList list;
  Source a(&log, 'a'), b(&log, 'b');
  list.add(a, Time{0});
  list.add(b, Time{1000});
  EXPECT_EQ(list.poll(Time{2000}), 0u);
  EXPECT_EQ(log, "ab");
  b.ready = true;
  EXPECT_EQ(list.poll(Time{3000}), 1u);
  EXPECT_FALSE(b.hot());
  EXPECT_TRUE(a.hot());
  EXPECT_EQ(log, "abab");
  // Its time is over: one last try, then it cools down.
  EXPECT_EQ(list.poll(Time{0} + HotList::kPatience + nanoseconds(1)), 0u);
  EXPECT_EQ(log, "ababaa*");
  EXPECT_EQ(list.size(), 0u);
}

TEST(HotList, ATryMayRemoveTheNextOne) {
  std::string log;
  HotList list;
  Source a(&log, 'a'), b(&log, 'b'), c(&log, 'c');
  for (Source* source : {&a, &b, &c}) list.add(*source, Time{});
  a.list = &list;
  a.removes = &b;
  EXPECT_EQ(list.poll(Time{}), 0u);
  EXPECT_EQ(log, "ac");
  list.remove(b);  // twice is as good as once
  EXPECT_EQ(list.size(), 2u);
  log.clear();
  list.cool_all();
  EXPECT_EQ(log, "a*c*");
}

TEST(HotList, IsFullAtItsLimit) {
  std::string log;
  HotList list;
  std::vector<std::unique_ptr<Source>> sources;
  while (!list.full()) {
    sources.push_back(std::make_unique<Source>(&log, 'x'));
    list.add(*sources.back(), Time{});
  }
  EXPECT_EQ(sources.size(), HotList::kMost);
  list.remove(*sources[3]);
  EXPECT_FALSE(list.full());
  list.cool_all();
}

}  // namespace
}  // namespace cairn
