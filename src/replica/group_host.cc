#include "replica/group_host.h"

#include <fmt/core.h>

namespace cairn::replica {

Task<void> GroupHost::open(control::ClusterMap map, std::vector<ShardRef> shards) {
  ASSERT(groups_.empty());
  map_ = std::move(map);
  for (const ShardRef& ref : shards) {
    for (uint32_t number = 0; number < map_.group_count(); ++number) {
      const control::ReplicaEntry here{.device = ref.device, .shard = ref.number};
      if (map_.groups[number].replicas.front() != here) continue;
      const engine::GroupId id(number);
      auto group =
          co_await Group::open({.loop = loop_, .metrics = metrics_, .shard = *ref.shard, .store = *ref.store}, id);
      groups_.emplace(id, std::move(group));
    }
    ref.shard->forget_recovered();
  }
}

Task<void> GroupHost::close() {
  for (auto& [id, group] : groups_) co_await group->close();
}

Result<Group*> GroupHost::find(engine::GroupId group, uint64_t client_epoch) {
  if (client_epoch > map_.epoch) return Error(Errc::unavailable, "this node has an older cluster map; try again");
  const control::GroupEntry* entry = map_.find_group(group);
  if (entry != nullptr && client_epoch != 0 && client_epoch < entry->epoch) {
    return Error(Errc::stale_epoch, fmt::format("group {} has changed", group.value));
  }
  const auto found = groups_.find(group);
  if (found != groups_.end()) return found->second.get();
  if (client_epoch != 0 && client_epoch < map_.epoch) {
    return Error(Errc::stale_epoch, fmt::format("group {} is not here", group.value));
  }
  return Error(Errc::unavailable, fmt::format("group {} is not served here", group.value));
}

std::vector<Group*> GroupHost::groups() const {
  std::vector<Group*> out;
  out.reserve(groups_.size());
  for (const auto& [id, group] : groups_) out.push_back(group.get());
  return out;
}

}  // namespace cairn::replica
