// Runs a scenario over a range of seeds: the body of the program cairn-sim, apart so that tests can run it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "scenarios/scenario.h"

namespace cairn::scenarios {

struct RunnerOptions {
  uint64_t first_seed = 1;
  uint64_t seeds = 100;
  // Every so many seeds one is run twice, and both must leave the same trace. 0: never.
  uint64_t twice_every = 20;
  bool keep_going = false;     // after a failure
  std::FILE* trace = nullptr;  // every event of every seed
  Sabotage sabotage = Sabotage::none;
};

struct SeedFailure {
  uint64_t seed = 0;
  std::string message;
  std::string plan;
};

struct RunnerResult {
  std::string scenario{};
  uint64_t first_seed = 0;
  uint64_t seeds_run = 0;
  uint64_t seeds_run_twice = 0;
  std::vector<SeedFailure> failures{};
  uint64_t events = 0;
  int64_t simulated_ns = 0;
  Coverage coverage{};

  // The result of further seeds.
  void add(RunnerResult other);
};

// Called before each seed (`seed` is about to run), for progress and for crash reports.
using SeedListener = std::function<void(uint64_t seed, uint64_t done)>;

// Seed number `i` of those that the options ask for; twice if it is its turn.
RunnerResult run_seed(const Scenario& scenario, const RunnerOptions& options, uint64_t i, mem::Arena& arena);
RunnerResult run_seeds(const Scenario& scenario, const RunnerOptions& options, mem::Arena& arena,
                       const SeedListener& before_seed);

// How to repeat one seed.
std::string repeat_command(std::string_view scenario, uint64_t seed);
std::string to_json(const RunnerResult& result, double seconds);

}  // namespace cairn::scenarios
