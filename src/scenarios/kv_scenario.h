// The key-value machine over a store that forgets: conflicting conditional batches, reads, flushes, a store that is
// busy or fails, and crashes at any moment; the log is replayed after each.
//
// Checked: each batch in the log had true conditions at its place; reads, scans and refusals agree with the state at
// some moment of the call; after a crash the store is exactly the state at its applied index, and no flush is lost.
#pragma once

#include "scenarios/scenario.h"

namespace cairn::scenarios {

RunOutcome run_kv_scenario(const RunInput& input);

}  // namespace cairn::scenarios
