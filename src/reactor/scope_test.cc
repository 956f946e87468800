#include "reactor/scope.h"

#include <gtest/gtest.h>

#include <string>

#include "reactor/testing/test_loop.h"

namespace cairn {
namespace {

Task<void> until_cancelled(Loop* loop, CancelToken token, std::string* log) {
  auto slept = co_await loop->sleep(seconds(3600), token);
  *log += errc_name(slept.code());
  co_await loop->yield();  // tidying up takes another round
  *log += ";";
}

Task<void> close(Scope* scope, std::string* log) {
  co_await scope->close();
  *log += "closed";
}

TEST(Scope, CloseCancelsAndWaitsForAll) {
  TestLoop loop;
  std::string log;
  Scope scope(loop);
  scope.spawn(&until_cancelled, &loop, scope.token(), &log);
  scope.spawn(&until_cancelled, &loop, scope.token(), &log);
  EXPECT_EQ(scope.running(), 2u);
  loop.run(&close, &scope, &log);
  EXPECT_EQ(log, "cancelledcancelled;;closed");
  EXPECT_EQ(loop.now(), Time{});
}

Task<void> spawn_more(Scope* scope, Loop* loop, int left, std::string* log) {
  co_await loop->yield();
  *log += std::to_string(left);
  if (left > 0) scope->spawn(&spawn_more, scope, loop, left - 1, log);
}

Task<void> join(Scope* scope, std::string* log) {
  co_await scope->join();
  *log += "joined";
}

TEST(Scope, JoinWaitsForWhatIsSpawnedMeanwhile) {
  TestLoop loop;
  std::string log;
  Scope scope(loop);
  scope.spawn(&spawn_more, &scope, &loop, 3, &log);
  loop.run(&join, &scope, &log);
  EXPECT_EQ(log, "3210joined");
  loop.run(&join, &scope, &log);  // nothing runs: at once
  scope.spawn(&spawn_more, &scope, &loop, 0, &log);
  loop.run(&join, &scope, &log);
  EXPECT_EQ(log, "3210joinedjoined0joined");
}

TEST(ScopeDeath, LeavingWorkBehindIsABug) {
  TestLoop loop;
  std::string log;
  EXPECT_DEATH(
      {
        Scope scope(loop);
        scope.spawn(&until_cancelled, &loop, scope.token(), &log);
      },
      "assertion failed");
}

struct Ordered {
  std::string* log;
  char name;
  static void run(void* self) {
    auto& ordered = *static_cast<Ordered*>(self);
    ordered.log->push_back(ordered.name);
  }
};

TEST(Loop, RunsPostsInOrderAndNewOnesInALaterRound) {
  TestLoop loop;
  std::string log;
  Ordered a{&log, 'a'}, b{&log, 'b'}, c{&log, 'c'};
  struct Reposter {
    TestLoop* loop;
    Ordered* target;
    static void run(void* self) {
      auto& reposter = *static_cast<Reposter*>(self);
      reposter.loop->post(&Ordered::run, reposter.target);
    }
  } reposter{&loop, &c};
  loop.post(&Ordered::run, &a);
  loop.post(&Reposter::run, &reposter);
  loop.post(&Ordered::run, &b);
  EXPECT_EQ(loop.run_round(), 3u);
  EXPECT_EQ(log, "ab");
  EXPECT_EQ(loop.run_round(), 1u);
  EXPECT_EQ(log, "abc");
  // Many, across the queue's growth and wrap-around.
  for (int round = 0; round < 50; ++round) {
    log.clear();
    for (int i = 0; i < 7 * round; ++i) loop.post(&Ordered::run, i % 2 == 0 ? &a : &b);
    loop.run_round();
    ASSERT_EQ(log.size(), static_cast<size_t>(7 * round));
    for (size_t i = 0; i < log.size(); ++i) ASSERT_EQ(log[i], i % 2 == 0 ? 'a' : 'b');
  }
}

}  // namespace
}  // namespace cairn
