// From a device as it was found to one that belongs to this node.
#pragma once

#include "base/rng.h"
#include "base/status.h"
#include "engine/device.h"
#include "node/data_directory.h"
#include "reactor/task.h"

namespace cairn::node {

// Formats a blank device, when the node has none yet, or checks that it is the node's own. Which of the two:
//
//   on the device          node knows no device      node knows this device      node knows another
//   blank, half formatted  format                    corrupt: it lost its data   corrupt: wrong device
//   of this cluster        accept (a crash came      open                        corrupt: wrong device
//                          before it was noted)
//   of another cluster     already_exists: foreign   already_exists: foreign     already_exists: foreign
//   anything else          engine::open_device's error
//
// The caller notes the device (DataDirectory::remember_device) once everything else of the first start is durable, too.
Task<Result<engine::DeviceInfo>> set_up_device(engine::DeviceContext context, const DataDirectory& directory,
                                               std::string path, uint32_t shards, Rng& rng);

}  // namespace cairn::node
