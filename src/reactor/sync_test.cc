#include "reactor/sync.h"

#include <gtest/gtest.h>

#include <string>

#include "reactor/scope.h"
#include "reactor/testing/test_loop.h"

namespace cairn {
namespace {

Task<void> wait(Event* event, char name, std::string* log, CancelToken token) {
  auto waited = co_await event->wait(token);
  *log += name;
  if (!waited) *log += "!";
}

TEST(Event, WakesAllInOrderAndStaysSet) {
  TestLoop loop;
  Event event(loop);
  std::string log;
  Scope scope(loop);
  for (const char name : {'a', 'b', 'c'}) scope.spawn(&wait, &event, name, &log, CancelToken());
  event.set();
  EXPECT_EQ(log, "");  // waking runs nobody inside the caller
  event.reset();       // who was woken stays woken
  loop.run_ready_only();
  EXPECT_EQ(log, "abc");
  scope.spawn(&wait, &event, 'd', &log, CancelToken());
  loop.run_ready_only();
  EXPECT_EQ(log, "abc");
  event.set();
  scope.spawn(&wait, &event, 'e', &log, CancelToken());  // doesn't even wait
  EXPECT_EQ(log, "abce");
  loop.run_ready_only();
  EXPECT_EQ(log, "abced");
}

TEST(Event, CancellingOneLeavesTheOthers) {
  TestLoop loop;
  Event event(loop);
  std::string log;
  CancelSource source;
  Scope scope(loop);
  scope.spawn(&wait, &event, 'a', &log, CancelToken());
  scope.spawn(&wait, &event, 'b', &log, CancelToken(source));
  scope.spawn(&wait, &event, 'c', &log, CancelToken());
  source.cancel();
  loop.run_ready_only();
  EXPECT_EQ(log, "b!");
  event.set();
  loop.run_ready_only();
  EXPECT_EQ(log, "b!ac");
}

Task<void> take(Semaphore* semaphore, uint64_t n, char name, std::string* log, CancelToken token) {
  auto taken = co_await semaphore->take(n, token);
  *log += name;
  if (!taken) *log += "!";
}

TEST(Semaphore, ServesInOrderEvenWhenSmallerOnesWouldFit) {
  TestLoop loop;
  Semaphore semaphore(loop, 3);
  std::string log;
  Scope scope(loop);
  scope.spawn(&take, &semaphore, 2, 'a', &log, CancelToken());
  scope.spawn(&take, &semaphore, 2, 'b', &log, CancelToken());
  scope.spawn(&take, &semaphore, 1, 'c', &log, CancelToken());
  EXPECT_EQ(log, "a");
  EXPECT_FALSE(semaphore.try_take(1));  // one is there, but others wait for it
  EXPECT_TRUE(semaphore.has_waiters());
  semaphore.give(1);
  loop.run_ready_only();
  EXPECT_EQ(log, "ab");
  semaphore.give(1);
  loop.run_ready_only();
  EXPECT_EQ(log, "abc");
  EXPECT_EQ(semaphore.available(), 0u);
}

TEST(Semaphore, ACancelledWaiterAtTheFrontLetsTheNextGo) {
  TestLoop loop;
  Semaphore semaphore(loop, 1);
  std::string log;
  CancelSource source;
  Scope scope(loop);
  scope.spawn(&take, &semaphore, 5, 'a', &log, CancelToken(source));
  scope.spawn(&take, &semaphore, 1, 'b', &log, CancelToken());
  source.cancel();
  loop.run_ready_only();
  EXPECT_EQ(log, "a!b");
  EXPECT_EQ(semaphore.available(), 0u);
}

TEST(Semaphore, AGrantedTurnOutlivesACancelThatComesTooLate) {
  TestLoop loop;
  Semaphore semaphore(loop, 0);
  std::string log;
  CancelSource source;
  Scope scope(loop);
  scope.spawn(&take, &semaphore, 1, 'a', &log, CancelToken(source));
  semaphore.give(1);
  source.cancel();
  loop.run_ready_only();
  EXPECT_EQ(log, "a");  // it owns its unit: nothing is lost
  EXPECT_EQ(semaphore.available(), 0u);
}

TEST(Semaphore, FailsAllWaitersAtAnEnd) {
  TestLoop loop;
  Semaphore semaphore(loop, 0);
  std::string log;
  Scope scope(loop);
  scope.spawn(&take, &semaphore, 1, 'a', &log, CancelToken());
  scope.spawn(&take, &semaphore, 2, 'b', &log, CancelToken());
  semaphore.fail_waiters(Errc::closed);
  loop.run_ready_only();
  EXPECT_EQ(log, "a!b!");
}

}  // namespace
}  // namespace cairn
