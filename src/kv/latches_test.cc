#include "kv/latches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "kv/test_loop.h"

namespace cairn::kv {
namespace {

using Want = Latches::Want;

Want check(std::string key) { return {.key = std::move(key), .check = true}; }
Want change(std::string key) { return {.key = std::move(key), .change = true}; }
Want both(std::string key) { return {.key = std::move(key), .check = true, .change = true}; }

// A request that keeps what it gets until told to let go.
struct Holder {
  Latches::Guard guard;
  bool held = false;
  Errc failed = Errc::ok;
};

Task<void> hold(Latches* latches, Holder* holder, std::vector<Want> wants, CancelToken cancel) {
  auto guard = co_await latches->acquire(std::move(wants), cancel);
  if (!guard) {
    holder->failed = guard.code();
    co_return;
  }
  holder->guard = *std::move(guard);
  holder->held = true;
}

struct LatchesTest : ::testing::Test {
  TestLoop loop;
  Latches latches{loop, 100};
  Scope scope{loop};
  std::array<Holder, 8> holders;
  size_t next = 0;

  Holder& ask(std::vector<Want> wants, CancelToken cancel = {}) {
    Holder& holder = holders[next++];
    scope.spawn(&hold, &latches, &holder, std::move(wants), cancel);
    loop.run_until_idle();
    return holder;
  }
  void release(Holder& holder) {
    holder.guard.release();
    loop.run_until_idle();
  }
  void TearDown() override {
    for (Holder& holder : holders) release(holder);
    EXPECT_EQ(latches.keys(), 0u);
    EXPECT_EQ(scope.running(), 0u);
  }
};

TEST_F(LatchesTest, OnlyCheckingWhatAnotherChangesConflicts) {
  struct Case {
    Want held, wanted;
    bool together;
  };
  const Case cases[] = {
      {check("k"), check("k"), true},   {check("k"), change("k"), false}, {check("k"), both("k"), false},
      {change("k"), check("k"), false}, {change("k"), change("k"), true}, {change("k"), both("k"), false},
      {both("k"), check("k"), false},   {both("k"), change("k"), false},  {both("k"), both("k"), false},
      {both("k"), both("other"), true},
  };
  for (const Case& c : cases) {
    next = 0;
    holders = {};
    Holder& first = ask({c.held});
    Holder& second = ask({c.wanted});
    EXPECT_TRUE(first.held);
    EXPECT_EQ(second.held, c.together);
    release(first);
    EXPECT_TRUE(second.held);
    release(second);
  }
}

TEST_F(LatchesTest, FirstComeFirstServed) {
  Holder& a = ask({both("k")});
  Holder& b = ask({both("k")});
  Holder& c = ask({both("k")});
  release(a);
  EXPECT_TRUE(b.held && !c.held);
  release(b);
  EXPECT_TRUE(c.held);
}

TEST_F(LatchesTest, NobodyOvertakesAWaitingChange) {
  Holder& reader = ask({check("bucket")});
  Holder& removal = ask({both("bucket")});
  Holder& late = ask({check("bucket")});
  EXPECT_TRUE(reader.held && !removal.held && !late.held);
  release(reader);
  EXPECT_TRUE(removal.held && !late.held);
  release(removal);
  EXPECT_TRUE(late.held);
}

TEST_F(LatchesTest, AKeyNamedTwiceIsOneLatch) {
  Holder& a = ask({check("k"), change("k"), check("k")});
  EXPECT_TRUE(a.held);
  EXPECT_EQ(latches.keys(), 1u);
}

TEST_F(LatchesTest, CancellingLetsTheNextOneIn) {
  CancelSource cancel;
  Holder& a = ask({check("k")});
  Holder& b = ask({both("k"), change("free")}, cancel);
  Holder& c = ask({check("k")});
  Holder& d = ask({check("free")});
  EXPECT_TRUE(a.held && !b.held && !c.held && !d.held);
  cancel.cancel(Errc::timed_out);
  loop.run_until_idle();
  EXPECT_EQ(b.failed, Errc::timed_out);
  EXPECT_TRUE(c.held && d.held);
  EXPECT_EQ(ask({check("k")}, cancel).failed, Errc::timed_out) << "cancelled before it began";
}

TEST_F(LatchesTest, TooManyWaitersAreRefused) {
  Latches small(loop, 1);
  Holder a, b, c;
  scope.spawn(&hold, &small, &a, std::vector{both("k")}, CancelToken{});
  scope.spawn(&hold, &small, &b, std::vector{both("k")}, CancelToken{});
  scope.spawn(&hold, &small, &c, std::vector{both("k")}, CancelToken{});
  loop.run_until_idle();
  EXPECT_TRUE(a.held && !b.held);
  EXPECT_EQ(c.failed, Errc::busy);
  release(a);
  EXPECT_TRUE(b.held);
}

// Many workers take random sets of keys in random modes, hold them for some time and sometimes give up. Nobody may ever
// hold what conflicts, and everybody must come to an end.
struct Usage {
  std::map<std::string, std::pair<int, int>> held;  // checks, changes
  int granted = 0;
};

Task<void> worker(TestLoop* loop, Latches* latches, Usage* usage, uint64_t seed) {
  SeededRng rng(seed);
  for (int round = 0; round < 50; ++round) {
    std::vector<Want> wants;
    for (uint64_t i = 0, n = 1 + rng.below(4); i < n; ++i) {
      const uint64_t mode = 1 + rng.below(3);
      wants.push_back({.key = std::string(1, static_cast<char>('a' + rng.below(5))),
                       .check = (mode & 1) != 0,
                       .change = (mode & 2) != 0});
    }
    std::map<std::string, std::pair<bool, bool>> mine;
    for (const Want& want : wants) {
      mine[want.key].first |= want.check;
      mine[want.key].second |= want.change;
    }
    CancelSource cancel;
    Timer give_up([](void* source) { static_cast<CancelSource*>(source)->cancel(Errc::timed_out); }, &cancel);
    if (rng.chance(1, 4)) loop->arm_in(give_up, microseconds(static_cast<int64_t>(rng.below(3000))));
    auto guard = co_await latches->acquire(std::move(wants), cancel);
    loop->disarm(give_up);
    if (!guard) continue;
    ++usage->granted;
    for (const auto& [key, mode] : mine) {
      auto& [checks, changes] = usage->held[key];
      EXPECT_FALSE(mode.first && changes > 0) << key;
      EXPECT_FALSE(mode.second && checks > 0) << key;
    }
    for (const auto& [key, mode] : mine) {
      usage->held[key].first += mode.first ? 1 : 0;
      usage->held[key].second += mode.second ? 1 : 0;
    }
    (void)co_await loop->sleep(microseconds(static_cast<int64_t>(rng.below(500))));
    for (const auto& [key, mode] : mine) {
      usage->held[key].first -= mode.first ? 1 : 0;
      usage->held[key].second -= mode.second ? 1 : 0;
    }
  }
}

TEST_F(LatchesTest, RandomWorkersNeverConflictAndAlwaysEnd) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Usage usage;
    for (uint64_t i = 0; i < 20; ++i) scope.spawn(&worker, &loop, &latches, &usage, seed * 100 + i);
    loop.run_until_idle();
    EXPECT_EQ(scope.running(), 0u) << "somebody waits for ever";
    EXPECT_GT(usage.granted, 500);
    EXPECT_EQ(latches.keys(), 0u);
    EXPECT_EQ(latches.waiting(), 0u);
  }
}

}  // namespace
}  // namespace cairn::kv
