#include "scenarios/runner.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "scenarios/processes.h"

namespace cairn::scenarios {
namespace {

struct RunnerTest : ::testing::Test {
  mem::Arena arena = *mem::Arena::create(kArenaBytes);
  std::vector<uint64_t> seen;

  RunnerResult run(const Scenario& scenario, RunnerOptions options) {
    return run_seeds(scenario, options, arena, [this](uint64_t seed, uint64_t) { seen.push_back(seed); });
  }
};

RunOutcome fails_at_seven(const RunInput& input) {
  RunOutcome outcome;
  if (input.seed == 7) outcome.failure = "seven";
  outcome.coverage.hit("ran");
  return outcome;
}

TEST_F(RunnerTest, StopsAtTheFirstFailureAndSaysHowToRepeatIt) {
  const RunnerResult result = run({"fake", "", &fails_at_seven}, {.first_seed = 5, .seeds = 10});
  ASSERT_EQ(result.failures.size(), 1u);
  EXPECT_EQ(result.failures[0].seed, 7u);
  EXPECT_EQ(seen, (std::vector<uint64_t>{5, 6, 7}));
  const auto json = nlohmann::json::parse(to_json(result, 1.5));
  EXPECT_EQ(json["failures"][0]["seed"], 7);
  EXPECT_EQ(json["failures"][0]["repeat"], "cairn-sim --scenario fake --from 7 --seeds 1 --trace");
  EXPECT_EQ(json["coverage"]["ran"], 3);
}

TEST_F(RunnerTest, CanGoOnAfterAFailure) {
  const RunnerResult result = run({"fake", "", &fails_at_seven}, {.first_seed = 5, .seeds = 10, .keep_going = true});
  EXPECT_EQ(result.seeds_run, 10u);
  EXPECT_EQ(result.failures.size(), 1u);
}

RunOutcome differs_each_time(const RunInput&) {
  static uint64_t calls = 0;
  RunOutcome outcome;
  outcome.trace_hash = ++calls;
  return outcome;
}

TEST_F(RunnerTest, FindsAScenarioThatIsNotDeterministic) {
  const RunnerResult result = run({"fake", "", &differs_each_time}, {.seeds = 3, .twice_every = 1});
  ASSERT_EQ(result.failures.size(), 1u);
  EXPECT_NE(result.failures[0].message.find("not deterministic"), std::string::npos);
}

RunOutcome depends_on_the_seed(const RunInput& input) {
  RunOutcome outcome;
  outcome.events = input.seed;
  outcome.simulated_ns = 3;
  outcome.coverage.hit("odd", input.seed % 2);
  outcome.coverage.expect("never");
  if (input.seed == 17 || input.seed == 30) {
    outcome.failure = "seventeen\nor thirty \xff";
    outcome.plan = "none";
  }
  return outcome;
}

TEST_F(RunnerTest, ManyProcessesGiveTheResultOfOne) {
  const auto nothing = [](uint64_t, uint64_t) {};
  const Scenario scenario{"fake", "", &depends_on_the_seed};
  for (const bool keep_going : {false, true}) {
    const RunnerOptions options{.first_seed = 10, .seeds = 37, .twice_every = 5, .keep_going = keep_going};
    const RunnerResult one = run(scenario, options);
    for (const unsigned processes : {1u, 2u, 7u, 50u}) {
      const auto many = run_seeds_in_processes(scenario, options, processes, nothing, nothing);
      ASSERT_TRUE(many);
      // Text that isn't UTF-8 may come out differently.
      const auto comparable = [](RunnerResult result) {
        for (SeedFailure& failure : result.failures) failure.message.resize(20);
        return to_json(result, 0);
      };
      EXPECT_EQ(comparable(*many), comparable(one));
      EXPECT_EQ(many->failures.size(), keep_going ? 2u : 1u);
    }
  }
}

RunOutcome dies_at_seven(const RunInput& input) {
  if (input.seed == 7) ::raise(SIGABRT);
  return {};
}

TEST_F(RunnerTest, AProcessThatDiesTakesTheRunAlong) {
  const auto nothing = [](uint64_t, uint64_t) {};
  EXPECT_EXIT((void)run_seeds_in_processes({"fake", "", &dies_at_seven}, {.seeds = 20}, 3, nothing, nothing),
              ::testing::KilledBySignal(SIGABRT), "");
}

TEST_F(RunnerTest, EveryScenarioPassesAndIsDeterministic) {
  for (const Scenario& scenario : all_scenarios()) {
    const RunnerResult result = run(scenario, {.first_seed = 1000, .seeds = 20, .twice_every = 2});
    EXPECT_TRUE(result.failures.empty()) << scenario.name << " seed " << result.failures[0].seed << ": "
                                         << result.failures[0].message;
    EXPECT_EQ(result.seeds_run_twice, 10u);
  }
}

// A checker that can't fail proves nothing: each sabotage must be found, and soon.
struct SabotageCase {
  std::string_view scenario;
  Sabotage sabotage;
};
struct SabotageTest : RunnerTest, ::testing::WithParamInterface<SabotageCase> {};

TEST_P(SabotageTest, IsFound) {
  const RunnerResult result =
      run(*find_scenario(GetParam().scenario), {.seeds = 300, .twice_every = 0, .sabotage = GetParam().sabotage});
  EXPECT_EQ(result.failures.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Engine, SabotageTest,
                         ::testing::Values(SabotageCase{"engine", Sabotage::disk_lies_about_flush},
                                           SabotageCase{"engine", Sabotage::store_lies_about_flush},
                                           SabotageCase{"engine", Sabotage::forget_a_write},
                                           SabotageCase{"engine", Sabotage::resurrect_deletes}));
INSTANTIATE_TEST_SUITE_P(Kv, SabotageTest,
                         ::testing::Values(SabotageCase{"kv", Sabotage::store_lies_about_flush},
                                           SabotageCase{"kv", Sabotage::skip_entry}));
INSTANTIATE_TEST_SUITE_P(Srpc, SabotageTest,
                         ::testing::Values(SabotageCase{"srpc", Sabotage::intruder_has_the_key},
                                           SabotageCase{"srpc", Sabotage::lives_look_alike}));
INSTANTIATE_TEST_SUITE_P(Node, SabotageTest,
                         ::testing::Values(SabotageCase{"node", Sabotage::disk_lies_about_flush},
                                           SabotageCase{"node", Sabotage::store_lies_about_flush}));

}  // namespace
}  // namespace cairn::scenarios
