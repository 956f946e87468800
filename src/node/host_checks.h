// What the machine gives.
#pragma once

namespace cairn::node {

// Raises the soft limit of open files to the hard one; a warning when that isn't much.
void raise_file_limit();

}  // namespace cairn::node
