#include "reactor/timer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/rng.h"

namespace cairn {
namespace {

struct Fired {
  std::vector<int>* log;
  int number;
  Timer timer{&fire, this};
  static void fire(void* self) {
    auto& fired = *static_cast<Fired*>(self);
    fired.log->push_back(fired.number);
  }
};

TEST(TimerHeap, FiresByTimeThenByOrderOfArming) {
  TimerHeap heap;
  std::vector<int> log;
  Fired a{&log, 1}, b{&log, 2}, c{&log, 3}, d{&log, 4};
  heap.arm(a.timer, Time{20});
  heap.arm(b.timer, Time{10});
  heap.arm(c.timer, Time{20});
  heap.arm(d.timer, Time{30});
  EXPECT_EQ(heap.next(), Time{10});
  EXPECT_EQ(heap.fire_due(Time{9}), 0u);
  EXPECT_EQ(heap.fire_due(Time{20}), 3u);
  EXPECT_EQ(log, (std::vector<int>{2, 1, 3}));
  EXPECT_EQ(heap.next(), Time{30});
  heap.disarm(d.timer);
  heap.disarm(d.timer);  // twice is as good as once
  EXPECT_EQ(heap.next(), Time::never());
}

TEST(TimerHeap, RearmingMovesATimer) {
  TimerHeap heap;
  std::vector<int> log;
  Fired a{&log, 1}, b{&log, 2};
  heap.arm(a.timer, Time{10});
  heap.arm(b.timer, Time{20});
  heap.arm(a.timer, Time{30});
  EXPECT_EQ(heap.fire_due(Time{100}), 2u);
  EXPECT_EQ(log, (std::vector<int>{2, 1}));
}

// Rearms itself for the same instant and disarms another from its callback.
struct Meddler {
  TimerHeap* heap;
  Timer* victim;
  int fired = 0;
  Timer timer{&fire, this};
  static void fire(void* self) {
    auto& meddler = *static_cast<Meddler*>(self);
    ++meddler.fired;
    meddler.heap->disarm(*meddler.victim);
    meddler.heap->arm(meddler.timer, Time{0});
  }
};

TEST(TimerHeap, CallbacksMayArmAndDisarm) {
  TimerHeap heap;
  std::vector<int> log;
  Fired victim{&log, 1};
  Meddler meddler{&heap, &victim.timer};
  heap.arm(meddler.timer, Time{5});
  heap.arm(victim.timer, Time{5});
  EXPECT_EQ(heap.fire_due(Time{5}), 1u);  // what it armed waits for the next call, or this one would never end
  EXPECT_EQ(heap.fire_due(Time{5}), 1u);
  EXPECT_EQ(meddler.fired, 2);
  EXPECT_TRUE(log.empty());
  heap.disarm(meddler.timer);
}

// A callback's own new timer, due at once and earliest of all, must not hold up the others.
struct Rearming {
  TimerHeap* heap;
  Timer timer{&fire, this};
  static void fire(void* self) {
    auto& rearming = *static_cast<Rearming*>(self);
    rearming.heap->arm(rearming.timer, Time{0});
  }
};

TEST(TimerHeap, ATimerArmedByACallbackHoldsUpNobody) {
  TimerHeap heap;
  std::vector<int> log;
  Fired other{&log, 1};
  Rearming rearming{&heap};
  heap.arm(rearming.timer, Time{1});
  heap.arm(other.timer, Time{2});
  heap.fire_due(Time{5});
  EXPECT_EQ(log, std::vector<int>{1});
  heap.disarm(rearming.timer);
}

TEST(TimerHeap, AgreesWithASortedList) {
  SeededRng rng(42);
  TimerHeap heap;
  std::vector<int> log;
  std::vector<std::unique_ptr<Fired>> timers;
  for (int i = 0; i < 200; ++i) timers.emplace_back(new Fired{&log, i});
  struct Armed {
    int64_t at;
    uint64_t order;
    int number;
  };
  std::vector<Armed> model;
  uint64_t order = 0;
  int64_t now = 0;
  for (int step = 0; step < 20'000; ++step) {
    const int number = static_cast<int>(rng.below(timers.size()));
    Timer& timer = timers[static_cast<size_t>(number)]->timer;
    switch (rng.below(4)) {
      case 0:
      case 1: {
        std::erase_if(model, [&](const Armed& a) { return a.number == number; });
        const int64_t at = now + static_cast<int64_t>(rng.below(100));
        model.push_back({at, order++, number});
        heap.arm(timer, Time{at});
        break;
      }
      case 2:
        std::erase_if(model, [&](const Armed& a) { return a.number == number; });
        heap.disarm(timer);
        break;
      default: {
        now += static_cast<int64_t>(rng.below(10));
        std::ranges::sort(
            model, [](const Armed& a, const Armed& b) { return a.at != b.at ? a.at < b.at : a.order < b.order; });
        std::vector<int> expected;
        while (!model.empty() && model.front().at <= now) {
          expected.push_back(model.front().number);
          model.erase(model.begin());
        }
        log.clear();
        heap.fire_due(Time{now});
        ASSERT_EQ(log, expected);
      }
    }
    ASSERT_EQ(heap.size(), model.size());
  }
  for (auto& timer : timers) heap.disarm(timer->timer);
}

void destroy_armed_timer() {
  TimerHeap heap;
  std::vector<int> log;
  Fired fired{&log, 1};
  heap.arm(fired.timer, Time{1});
}

TEST(TimerDeath, DestroyingAnArmedTimerIsABug) { EXPECT_DEATH(destroy_armed_timer(), "!armed"); }

}  // namespace
}  // namespace cairn
