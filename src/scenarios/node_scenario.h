// A whole storage node through several lives: objects are put, overwritten, read, listed and deleted, in one piece and
// in parts, and the power goes, the process is killed or stops, at any moment.
//
// Checked: after each restart every acknowledged object is there with the right bytes, no deleted one is back, what was
// not acknowledged is whole or absent, and the listing agrees. Of conditional creations of one key at most one wins.
// At the end, with the faults off, everything works again; and when all is deleted, the janitor gives all space back.
#pragma once

#include "scenarios/scenario.h"

namespace cairn::scenarios {

RunOutcome run_node_scenario(const RunInput& input);

}  // namespace cairn::scenarios
