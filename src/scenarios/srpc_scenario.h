// SRPC over a simulated network: clients call servers while connections are lost, nodes are cut off, killed, drained
// and restarted, and memory runs out.
//
// Promises checked:
//   - each call ends exactly once, and not later than its deadline (a moment of scheduling apart)
//   - an answered call was executed exactly once, any other at most once; the answer is the right one, with its payload
//   - that holds for sequenced calls, too, which are sent again when their connection is lost; unless the server's life
//     ended, or it says that it has forgotten, they don't fail for that
//   - once the faults end, every channel serves calls again, more of them than it has credits
//   - in the end every slot, credit and buffer is back: nothing runs, nothing is open, all memory is free
#pragma once

#include "scenarios/scenario.h"

namespace cairn::scenarios {

RunOutcome run_srpc_scenario(const RunInput& input);

}  // namespace cairn::scenarios
