#include "kv/kv_machine.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "kv/memory_store.h"
#include "kv/test_loop.h"

namespace cairn::kv {
namespace {

using Kind = Condition::Kind;

std::unique_ptr<KvMachine> must_open(TestLoop& loop, OrderedStore& store, std::string prefix = "g1/") {
  auto machine = loop.run(&KvMachine::open, std::ref(loop), std::ref(store), KvMachine::Options{.prefix = prefix});
  EXPECT_TRUE(machine);
  return *std::move(machine);
}

// What stands between a leader and its state machine: gives each body the next index, takes a random time until it is
// committed, and applies in order.
struct FakeLog {
  TestLoop& loop;
  KvMachine& machine;
  uint64_t last = 0;
  std::vector<std::string> bodies{};

  Task<Result<void>> batch(Batch batch) {
    CO_TRY(auto admission, co_await machine.admit(std::move(batch)));
    const uint64_t index = ++last;
    bodies.push_back(admission.body);
    (void)co_await loop.sleep(microseconds(static_cast<int64_t>(loop.rng().below(200))));
    while (machine.applied() + 1 < index) (void)co_await loop.sleep(microseconds(10));
    CO_TRY(co_await machine.apply(index, admission.body));
    co_return Result<void>{};
  }
};

Result<void> do_batch(TestLoop& loop, FakeLog& log, Batch batch) {
  return loop.run(&FakeLog::batch, &log, std::move(batch));
}

struct KvMachineTest : ::testing::Test {
  TestLoop loop;
  MemoryStore store{loop, {.read_max = microseconds(50), .flush_max = microseconds(500)}};
  std::unique_ptr<KvMachine> machine = must_open(loop, store);
  FakeLog log{loop, *machine};

  std::optional<std::string> get(std::string key) { return *loop.run(&KvMachine::get, machine.get(), std::move(key)); }
};

TEST_F(KvMachineTest, AppliesAndReads) {
  ASSERT_TRUE(do_batch(loop, log, {.conditions = {}, .mutations = {{"a", "1"}, {"b", "2"}, {"a", "3"}}}));
  EXPECT_EQ(get("a"), "3");
  ASSERT_TRUE(do_batch(loop, log, {.conditions = {}, .mutations = {{"a", std::nullopt}}}));
  EXPECT_EQ(get("a"), std::nullopt);
  EXPECT_EQ(get("b"), "2");
  EXPECT_EQ(machine->applied(), 2u);
}

TEST_F(KvMachineTest, Conditions) {
  ASSERT_TRUE(do_batch(loop, log, {.conditions = {}, .mutations = {{"a", "1"}}}));
  struct Case {
    std::vector<Condition> conditions;
    std::optional<std::string> failed;
  };
  const Case cases[] = {
      {{{"a", Kind::present}}, std::nullopt},
      {{{"a", Kind::absent}}, "0"},
      {{{"none", Kind::absent}}, std::nullopt},
      {{{"none", Kind::present}}, "0"},
      {{{"a", Kind::equals, "1"}}, std::nullopt},
      {{{"a", Kind::equals, "2"}}, "0"},
      {{{"none", Kind::equals, ""}}, "0"},
      {{{"a", Kind::present}, {"none", Kind::absent}, {"a", Kind::equals, "x"}, {"a", Kind::absent}}, "2"},
  };
  for (const Case& c : cases) {
    const auto result = do_batch(loop, log, {.conditions = c.conditions, .mutations = {{"out", "x"}}});
    EXPECT_EQ(result.has_value(), !c.failed.has_value());
    EXPECT_EQ(get("out").has_value(), !c.failed.has_value()) << "a failed batch has no effect";
    if (c.failed) {
      EXPECT_EQ(result.code(), Errc::condition_failed);
      EXPECT_EQ(result.error().message(), *c.failed);
    }
    ASSERT_TRUE(do_batch(loop, log, {.conditions = {}, .mutations = {{"out", std::nullopt}}}));
  }
}

Task<void> create(FakeLog* log, std::string value, int* won, int* lost) {
  Batch batch{.conditions = {{"key", Kind::absent}}, .mutations = {{"key", value}, {"copy", value}}};
  const auto result = co_await log->batch(std::move(batch));
  EXPECT_TRUE(result || result.code() == Errc::condition_failed);
  ++*(result ? won : lost);
}

// P26: many conditional creations of one key at once, a hundred rounds: exactly one wins, and the key holds its value.
TEST_F(KvMachineTest, ExactlyOneOfManyConditionalCreationsWins) {
  for (int round = 0; round < 100; ++round) {
    int won = 0;
    int lost = 0;
    Scope scope(loop);
    for (int i = 0; i < 32; ++i) scope.spawn(&create, &log, std::to_string(i), &won, &lost);
    loop.run_until_idle();
    EXPECT_EQ(won, 1);
    EXPECT_EQ(lost, 31);
    EXPECT_EQ(get("key"), get("copy"));
    ASSERT_TRUE(do_batch(loop, log, {.conditions = {}, .mutations = {{"key", std::nullopt}}}));
  }
}

Task<void> increment(FakeLog* log, std::string key, int times, int* done) {
  while (*done < times) {
    const auto old = co_await log->machine.get(key);
    const std::string next = std::to_string(std::stoi(**old) + 1);
    Batch batch{.conditions = {{key, Kind::equals, **old}}, .mutations = {{key, next}}};
    if (co_await log->batch(std::move(batch))) ++*done;
  }
}

TEST_F(KvMachineTest, CompareAndSwapLosesNoIncrement) {
  ASSERT_TRUE(do_batch(loop, log, {.conditions = {}, .mutations = {{"n", "0"}}}));
  std::array<int, 16> done{};
  Scope scope(loop);
  for (int& count : done) scope.spawn(&increment, &log, "n", 20, &count);
  loop.run_until_idle();
  ASSERT_EQ(scope.running(), 0u);
  EXPECT_EQ(get("n"), std::to_string(16 * 20));
}

// A blind write must not slip in between the check and the effect of a conditional one.
Task<void> blind(FakeLog* log, std::string value) {
  (void)co_await log->batch({.conditions = {}, .mutations = {{"k", value}}});
}
Task<void> conditional(FakeLog* log, int* won) {
  Batch batch{.conditions = {{"k", Kind::equals, "a"}}, .mutations = {{"k", "c"}}};
  if (co_await log->batch(std::move(batch))) ++*won;
}
TEST_F(KvMachineTest, TheLogNeverHoldsAConditionalBatchWhoseConditionIsNotTrueThere) {
  for (int round = 0; round < 200; ++round) {
    const size_t start = log.bodies.size();
    int won = 0;
    Scope scope(loop);
    for (int i = 0; i < 4; ++i) {
      scope.spawn(&blind, &log, std::string(loop.rng().chance(1, 2) ? "a" : "b"));
      scope.spawn(&conditional, &log, &won);
    }
    loop.run_until_idle();
    // The log, executed: wherever "c" is written, the value just before must be "a".
    std::string value = get("k").value_or("");
    std::string before;
    for (size_t i = 0; i < log.bodies.size(); ++i) {
      const std::string written = *(*decode_batch(log.bodies[i]))[0].value;
      if (i >= start && written == "c") {
        EXPECT_EQ(before, "a");
      }
      before = written;
    }
    EXPECT_EQ(before, value);
  }
}

TEST_F(KvMachineTest, TooLargeABatchIsRefusedBeforeAnything) {
  Batch batch{.conditions = {}, .mutations = {{"k", std::string(kMaxBatchBytes, 'x')}}};
  EXPECT_EQ(do_batch(loop, log, std::move(batch)).code(), Errc::too_large);
  EXPECT_EQ(machine->latches().keys(), 0u);
}

TEST_F(KvMachineTest, ReplayIsIdempotent) {
  ASSERT_TRUE(do_batch(loop, log, {.conditions = {}, .mutations = {{"a", "1"}}}));
  ASSERT_TRUE(do_batch(loop, log, {.conditions = {}, .mutations = {{"a", "2"}}}));
  ASSERT_TRUE(
      loop.run(&KvMachine::apply, machine.get(), uint64_t{1}, log.bodies[0], std::vector<Mutation>{}, CancelToken{}));
  EXPECT_EQ(get("a"), "2");
  EXPECT_EQ(machine->applied(), 2u);
}

TEST_F(KvMachineTest, WhatGoesAlongIsInTheSameWrite) {
  const std::string body = *encode_batch(std::vector<Mutation>{{"a", "1"}});
  ASSERT_TRUE(loop.run(&KvMachine::apply, machine.get(), uint64_t{5}, body, std::vector<Mutation>{{"shard mark", "5"}},
                       CancelToken{}));
  EXPECT_EQ(store.unflushed_writes(), 1u);
  EXPECT_EQ(store.contents().at("shard mark"), "5");
}

TEST_F(KvMachineTest, GroupsDoNotSeeEachOther) {
  auto other = must_open(loop, store, "g2/");
  ASSERT_TRUE(do_batch(loop, log, {.conditions = {}, .mutations = {{"a", "1"}}}));
  EXPECT_FALSE(loop.run(&KvMachine::get, other.get(), "a")->has_value());
  EXPECT_TRUE(loop.run(&KvMachine::scan, other.get(), ScanOptions{})->items.empty());
  EXPECT_EQ(loop.run(&KvMachine::scan, machine.get(), ScanOptions{})->items.size(), 1u) << "bookkeeping isn't listed";
  EXPECT_EQ(other->applied(), 0u);
}

TEST_F(KvMachineTest, ABusyStoreIsWaitedForAndNothingIsDropped) {
  store.set_unflushed_limit(3);
  Scope scope(loop);
  for (int i = 0; i < 50; ++i) {
    scope.spawn(&blind, &log, std::to_string(i));
  }
  loop.run_until_idle();
  EXPECT_EQ(machine->applied(), 50u);
  EXPECT_EQ(scope.running(), 0u);
}

TEST_F(KvMachineTest, AFailedWriteFailsTheMachineForGood) {
  int failures = 1;
  store.set_fault_hook([&](MemoryStore::Operation operation) {
    return operation == MemoryStore::Operation::write && failures-- > 0 ? Errc::io_error : Errc::ok;
  });
  EXPECT_EQ(do_batch(loop, log, {.conditions = {}, .mutations = {{"a", "1"}}}).code(), Errc::io_error);
  const std::string body = *encode_batch({});
  EXPECT_EQ(
      loop.run(&KvMachine::apply, machine.get(), uint64_t{2}, body, std::vector<Mutation>{}, CancelToken{}).code(),
      Errc::io_error)
      << "entry 2 must not be applied without entry 1";
}

TEST_F(KvMachineTest, ACorruptBodyFailsTheMachine) {
  std::string body = *encode_batch(std::vector<Mutation>{{"a", "1"}});
  body.back() = 'x';
  const auto result =
      loop.run(&KvMachine::apply, machine.get(), uint64_t{1}, body, std::vector<Mutation>{}, CancelToken{});
  EXPECT_EQ(result.code(), Errc::corrupt);
  EXPECT_NE(result.error().message().find("entry 1"), std::string::npos);
  EXPECT_EQ(get("a"), std::nullopt);
}

TEST_F(KvMachineTest, ACorruptAppliedIndexIsNotTakenForZero) {
  ASSERT_TRUE(do_batch(loop, log, {.conditions = {}, .mutations = {{"a", "1"}}}));
  Mutation mark{"g1/m", store.contents().at("g1/m")};
  (*mark.value)[4] = 7;
  ASSERT_TRUE(store.write({&mark, 1}));
  EXPECT_EQ(loop.run(&KvMachine::open, std::ref(loop), std::ref(store), KvMachine::Options{.prefix = "g1/"}).code(),
            Errc::corrupt);
}

// Crashes at any point: after each, the store holds exactly the first applied() entries, and replaying the log brings
// the state back.
TEST(KvMachineCrash, StateIsAlwaysThatOfItsAppliedIndex) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    TestLoop loop(seed);
    SeededRng rng(seed * 31);
    MemoryStore store;
    std::vector<std::string> bodies;
    std::vector<std::map<std::string, std::string>> states(1);
    for (int i = 0; i < 30; ++i) {
      std::vector<Mutation> mutations;
      auto state = states.back();
      for (uint64_t m = 0, n = 1 + rng.below(4); m < n; ++m) {
        const std::string key = "k" + std::to_string(rng.below(6));
        if (rng.chance(1, 3)) {
          mutations.push_back({key, std::nullopt});
          state.erase(key);
        } else {
          mutations.push_back({key, std::to_string(rng.below(1000))});
          state[key] = *mutations.back().value;
        }
      }
      bodies.push_back(*encode_batch(mutations));
      states.push_back(std::move(state));
    }
    size_t flushed = 0;
    for (int crash = 0; crash < 5; ++crash) {
      auto machine = must_open(loop, store);
      EXPECT_GE(machine->applied(), flushed) << "flushed entries are lost";
      const auto all = *loop.run(&KvMachine::scan, machine.get(), ScanOptions{});
      std::map<std::string, std::string> state;
      for (const KeyValue& item : all.items) state[item.key] = item.value;
      EXPECT_EQ(state, states[machine->applied()]) << "seed " << seed;
      const size_t until = std::min<size_t>(bodies.size(), machine->applied() + rng.below(10));
      for (size_t index = 1; index <= until; ++index) {  // replays what is applied, too
        ASSERT_TRUE(loop.run(&KvMachine::apply, machine.get(), uint64_t{index}, bodies[index - 1],
                             std::vector<Mutation>{}, CancelToken{}));
        if (rng.chance(1, 8)) {
          ASSERT_TRUE(loop.run(&MemoryStore::flush, &store));
          flushed = machine->applied();
        }
      }
      store.crash(rng);
    }
  }
}

}  // namespace
}  // namespace cairn::kv
