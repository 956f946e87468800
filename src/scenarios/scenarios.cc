#include <algorithm>
#include <array>

#include "scenarios/engine_scenario.h"
#include "scenarios/kv_scenario.h"
#include "scenarios/node_scenario.h"
#include "scenarios/scenario.h"
#include "scenarios/srpc_scenario.h"

namespace cairn::scenarios {
namespace {

constexpr std::array kScenarios = {
    Scenario{"engine", "a shard through crashes, torn and lost writes, errors, rot, a full disk", &run_engine_scenario},
    Scenario{"node", "a whole storage node with its object store, through crashes and stops", &run_node_scenario},
    Scenario{"srpc", "channels and servers on a network that delays, drops and cuts", &run_srpc_scenario},
    Scenario{"kv", "the key-value machine over a store that forgets what was not flushed", &run_kv_scenario},
};

}  // namespace

std::span<const Scenario> all_scenarios() { return kScenarios; }

const Scenario* find_scenario(std::string_view name) {
  const auto* found = std::ranges::find(kScenarios, name, &Scenario::name);
  return found == kScenarios.end() ? nullptr : found;
}

}  // namespace cairn::scenarios
