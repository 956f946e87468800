// The cluster map of a node on its own.
#pragma once

#include <string>

#include "control/map_store.h"
#include "engine/device.h"
#include "node/data_directory.h"
#include "reactor/task.h"

namespace cairn::node {

// Loads the map, or forms the cluster when there is none and `may_form`. Where this start differs from what the map
// says about this node (its address, its number of poll groups), a newer map is kept first. Errors: the map store's;
// corrupt when the map isn't about this cluster, node and device, or is missing though the node has been used.
Task<Result<control::ClusterMap>> set_up_map(control::MapStore& maps, const Identity& identity,
                                             engine::DeviceInfo device, control::NodeEntry self, bool may_form);

}  // namespace cairn::node
