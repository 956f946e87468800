#include "node/cluster_setup.h"

#include <algorithm>

namespace cairn::node {

Task<Result<control::ClusterMap>> set_up_map(control::MapStore& maps, const Identity& identity,
                                             engine::DeviceInfo device, control::NodeEntry self, bool may_form) {
  CO_TRY(auto loaded, co_await maps.load());
  if (!loaded) {
    if (!may_form) {
      co_return Error(Errc::corrupt,
                      "the cluster map is missing from the store though this node has been used: restore the data "
                      "directory from a backup");
    }
    CO_TRY(auto formed, control::make_single_node_map(identity.cluster_id, self,
                                                      {{device.device, self.id, device.geometry.shard_count}}));
    CO_TRY(co_await maps.replace(formed));
    co_return formed;
  }
  control::ClusterMap map = *std::move(loaded);
  const auto node = std::ranges::find(map.nodes, self.id, &control::NodeEntry::id);
  if (map.cluster != identity.cluster_id || node == map.nodes.end() || map.find_device(device.device) == nullptr) {
    co_return Error(Errc::corrupt,
                    "the cluster map in the store is about another cluster, node or device: store and device don't "
                    "belong together; restore both from the same time");
  }
  if (*node == self) co_return map;
  *node = std::move(self);
  ++map.epoch;
  CO_TRY(co_await maps.replace(map));
  co_return map;
}

}  // namespace cairn::node
