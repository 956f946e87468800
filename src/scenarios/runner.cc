#include "scenarios/runner.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace cairn::scenarios {

void RunnerResult::add(RunnerResult other) {
  seeds_run += other.seeds_run;
  seeds_run_twice += other.seeds_run_twice;
  events += other.events;
  simulated_ns += other.simulated_ns;
  coverage.add(other.coverage);
  for (SeedFailure& failure : other.failures) failures.push_back(std::move(failure));
}

RunnerResult run_seed(const Scenario& scenario, const RunnerOptions& options, uint64_t i, mem::Arena& arena) {
  const RunInput input{
      .seed = options.first_seed + i, .arena = arena, .trace = options.trace, .sabotage = options.sabotage};
  RunOutcome outcome = scenario.run(input);
  RunnerResult result{.seeds_run = 1,
                      .events = outcome.events,
                      .simulated_ns = outcome.simulated_ns,
                      .coverage = std::move(outcome.coverage)};
  if (!outcome.failure && options.twice_every != 0 && i % options.twice_every == 0) {
    result.seeds_run_twice = 1;
    const RunOutcome again = scenario.run(input);
    if (again.trace_hash != outcome.trace_hash || again.events != outcome.events) {
      outcome.failure = fmt::format(
          "not deterministic: trace {:016x} of {} events, then {:016x} of {}. Something depends on addresses, hash "
          "order, uninitialised memory or the clock: compare two outputs of --trace",
          outcome.trace_hash, outcome.events, again.trace_hash, again.events);
    }
  }
  if (outcome.failure) {
    result.failures.push_back({.seed = input.seed, .message = *outcome.failure, .plan = outcome.plan});
  }
  return result;
}

RunnerResult run_seeds(const Scenario& scenario, const RunnerOptions& options, mem::Arena& arena,
                       const SeedListener& before_seed) {
  RunnerResult result{.scenario = std::string(scenario.name), .first_seed = options.first_seed};
  for (uint64_t i = 0; i < options.seeds; ++i) {
    before_seed(options.first_seed + i, i);
    result.add(run_seed(scenario, options, i, arena));
    if (!result.failures.empty() && !options.keep_going) break;
  }
  return result;
}

std::string repeat_command(std::string_view scenario, uint64_t seed) {
  return fmt::format("cairn-sim --scenario {} --from {} --seeds 1 --trace", scenario, seed);
}

std::string to_json(const RunnerResult& result, double seconds) {
  nlohmann::ordered_json json;
  json["scenario"] = result.scenario;
  json["from"] = result.first_seed;
  json["seeds"] = result.seeds_run;
  json["seeds_run_twice"] = result.seeds_run_twice;
  json["seconds"] = seconds;
  json["simulated_seconds"] = static_cast<double>(result.simulated_ns) / 1e9;
  json["events"] = result.events;
  json["failures"] = nlohmann::ordered_json::array();
  for (const SeedFailure& failure : result.failures) {
    json["failures"].push_back({{"seed", failure.seed},
                                {"message", failure.message},
                                {"faults", failure.plan},
                                {"repeat", repeat_command(result.scenario, failure.seed)}});
  }
  for (const auto& [name, count] : result.coverage.counts()) json["coverage"][name] = count;
  return json.dump(2);
}

}  // namespace cairn::scenarios
