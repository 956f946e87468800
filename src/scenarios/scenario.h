// Scenario: one world, one workload, one checker. A function of the seed and nothing else.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "mem/arena.h"
#include "sim/coverage.h"

namespace cairn::scenarios {

// Scenarios are written in the words of the world that they run in.
using namespace sim;

// Ways to break the world's own promises, so that tests can see that a checker notices.
enum class Sabotage : uint8_t {
  none,
  disk_lies_about_flush,
  store_lies_about_flush,
  skip_entry,         // one entry isn't replayed
  forget_a_write,     // the model takes one acknowledged write for not done
  resurrect_deletes,  // the model forgets deletes
  intruder_has_the_key,
  lives_look_alike,  // a restarted server says that it is the one of before
};

// What a scenario may use of the arena.
inline constexpr size_t kArenaBytes = size_t{32} << 20;

struct RunInput {
  uint64_t seed = 0;
  mem::Arena& arena;           // kArenaBytes of memory for pools; its content is left over from earlier runs
  std::FILE* trace = nullptr;  // prints every event
  Sabotage sabotage = Sabotage::none;
};

struct RunOutcome {
  std::optional<std::string> failure;  // what promise was broken
  std::string plan;                    // the faults that were on, for people
  uint64_t trace_hash = 0;
  uint64_t events = 0;
  int64_t simulated_ns = 0;
  Coverage coverage;
};

struct Scenario {
  std::string_view name;
  std::string_view description;
  RunOutcome (*run)(const RunInput& input);
};

std::span<const Scenario> all_scenarios();
// nullptr when there is none of that name.
const Scenario* find_scenario(std::string_view name);

}  // namespace cairn::scenarios
