#include "scenarios/runner.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace cairn::scenarios {

RunnerResult run_seeds(const Scenario& scenario, const RunnerOptions& options, mem::Arena& arena,
                       const SeedListener& before_seed) {
  RunnerResult result{.scenario = std::string(scenario.name), .first_seed = options.first_seed};
  for (uint64_t i = 0; i < options.seeds; ++i) {
    const uint64_t seed = options.first_seed + i;
    before_seed(seed, i);
    const RunInput input{.seed = seed, .arena = arena, .trace = options.trace, .sabotage = options.sabotage};
    RunOutcome outcome = scenario.run(input);
    ++result.seeds_run;
    result.events += outcome.events;
    result.simulated_ns += outcome.simulated_ns;
    result.coverage.add(outcome.coverage);

    if (!outcome.failure && options.twice_every != 0 && i % options.twice_every == 0) {
      ++result.seeds_run_twice;
      const RunOutcome again = scenario.run(input);
      if (again.trace_hash != outcome.trace_hash || again.events != outcome.events) {
        outcome.failure = fmt::format(
            "not deterministic: trace {:016x} of {} events, then {:016x} of {}. Something depends on addresses, hash "
            "order, uninitialised memory or the clock: compare two outputs of --trace",
            outcome.trace_hash, outcome.events, again.trace_hash, again.events);
      }
    }
    if (outcome.failure) {
      result.failures.push_back({.seed = seed, .message = *outcome.failure, .plan = outcome.plan});
      if (!options.keep_going) break;
    }
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
