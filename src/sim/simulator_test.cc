#include "sim/simulator.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reactor/deadline.h"

namespace cairn::sim {
namespace {

Task<void> note_after(Loop* loop, Duration delay, std::vector<int>* out, int id) {
  (void)co_await loop->sleep(delay);
  out->push_back(id);
}

TEST(Simulator, JumpsToTheNextTimer) {
  Simulator sim(1);
  SimLoop loop(sim);
  std::vector<int> order;
  Scope scope(loop);
  scope.spawn(&note_after, &loop, seconds(3600), &order, 2);
  scope.spawn(&note_after, &loop, milliseconds(1), &order, 1);
  EXPECT_EQ(sim.run_until([&] { return order.size() == 2; }, seconds(7200)), Simulator::Stop::done);
  EXPECT_EQ(order, (std::vector{1, 2}));
  EXPECT_GE(sim.now(), Time{} + seconds(3600));
  EXPECT_LT(sim.now(), Time{} + seconds(3601));
}

TEST(Simulator, StopsWhenNothingIsLeft) {
  Simulator sim(1);
  SimLoop loop(sim);
  EXPECT_EQ(sim.run_until([] { return false; }, seconds(1)), Simulator::Stop::idle);
}

TEST(Simulator, StopsAtTheTimeLimit) {
  Simulator sim(1);
  SimLoop loop(sim);
  std::vector<int> order;
  Scope scope(loop);
  scope.spawn(&note_after, &loop, seconds(10), &order, 1);
  EXPECT_EQ(sim.run_until([] { return false; }, seconds(1)), Simulator::Stop::time_limit);
  EXPECT_TRUE(order.empty());
  sim.run(loop, &Scope::join, &scope);
}

TEST(Simulator, TimePassesForWorkThatYields) {
  Simulator sim(1);
  SimLoop loop(sim);
  Deadline deadline(loop, loop.now() + milliseconds(1));
  const CancelToken token = deadline.token();
  struct Spin {
    static Task<void> run(Loop* loop, CancelToken token) {
      while (!token.cancelled()) co_await loop->yield();
    }
  };
  sim.run(loop, &Spin::run, &loop, token);
  EXPECT_GE(sim.now(), Time{} + milliseconds(1));
}

// Three loops with timers at one instant: every seed fires them in some order, the same one each time, and over the
// seeds all six orders occur.
std::string order_of(uint64_t seed, uint64_t* hash) {
  Simulator sim(seed);
  SimLoop a(sim), b(sim), c(sim);
  std::vector<int> order;
  Scope scope_a(a), scope_b(b), scope_c(c);
  scope_a.spawn(&note_after, &a, milliseconds(1), &order, 0);
  scope_b.spawn(&note_after, &b, milliseconds(1), &order, 1);
  scope_c.spawn(&note_after, &c, milliseconds(1), &order, 2);
  EXPECT_EQ(sim.run_until([&] { return order.size() == 3; }, seconds(1)), Simulator::Stop::done);
  *hash = sim.trace().hash();
  std::string text;
  for (int id : order) text += static_cast<char>('a' + id);
  return text;
}

TEST(Simulator, TheSeedDecidesTheOrderOfWhatIsSimultaneous) {
  std::vector<std::string> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    uint64_t first = 0;
    uint64_t second = 0;
    const std::string order = order_of(seed, &first);
    EXPECT_EQ(order_of(seed, &second), order);
    EXPECT_EQ(first, second) << "same seed, same trace";
    if (std::find(seen.begin(), seen.end(), order) == seen.end()) seen.push_back(order);
  }
  EXPECT_EQ(seen.size(), 6u);
}

TEST(Simulator, WithinALoopTheOrderIsThePromisedOne) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Simulator sim(seed);
    SimLoop loop(sim), other(sim);
    std::vector<int> order;
    Scope scope(loop);
    for (int id = 0; id < 5; ++id) scope.spawn(&note_after, &loop, milliseconds(1), &order, id);
    sim.run(loop, &Scope::join, &scope);
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
  }
}

TEST(Trace, DependsOnOrderContentAndTime) {
  Simulator sim(1);
  SimLoop loop(sim);
  Trace a(sim), b(sim), c(sim);
  a.event("x", 1, 2);
  a.event("y");
  b.event("y");
  b.event("x", 1, 2);
  EXPECT_NE(a.hash(), b.hash());
  c.event("x", 1, 2);
  sim.run_for(milliseconds(1));
  c.event("y");
  EXPECT_NE(a.hash(), c.hash());
}

}  // namespace
}  // namespace cairn::sim
