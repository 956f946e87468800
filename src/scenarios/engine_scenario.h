// A shard through several lives: work, and an end of any kind (power loss, kill, clean stop, at any moment, also while
// opening), then the next life, which must have everything that was acknowledged.
//
// Checked at every opening: each group's log ends at or after the last acknowledged entry and is the one that was
// written; every chunk, size, key and list is exactly what the log says. While it runs: every answer is one that some
// moment of the call allows; space adds up; nothing fails without a fault that explains it. With damage (rot, lying
// writes): right bytes or Errc::corrupt, and no more corrupt pages than were damaged. At the end, with the faults off,
// everything works again, and when all is deleted all space is free.
#pragma once

#include "scenarios/scenario.h"

namespace cairn::scenarios {

RunOutcome run_engine_scenario(const RunInput& input);

}  // namespace cairn::scenarios
