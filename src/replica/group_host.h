// GroupHost: the groups of one reactor, found by number.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "control/cluster_map.h"
#include "replica/group.h"

namespace cairn::replica {

class GroupHost {
 public:
  // A shard that this reactor owns.
  struct ShardRef {
    Id128 device;
    uint32_t number = 0;
    engine::Shard* shard = nullptr;
    kv::OrderedStore* store = nullptr;
  };

  // Loop and registry outlive the host.
  GroupHost(Loop& loop, Registry& registry) : loop_(loop), metrics_(registry) {}
  GroupHost(const GroupHost&) = delete;
  GroupHost& operator=(const GroupHost&) = delete;

  // Opens the groups that `map` puts on these shards, applies what was recovered of them, and lets the shards forget
  // it. Shards and stores outlive the host. Once.
  Task<void> open(control::ClusterMap map, std::vector<ShardRef> shards);
  // Closes the groups; the shards are closed after that.
  Task<void> close();

  void set_map(control::ClusterMap map) { map_ = std::move(map); }
  const control::ClusterMap& map() const { return map_; }

  // `client_epoch`: of the map that the caller found us by, 0 = it doesn't say. Errors: stale_epoch (the group has
  // moved or changed since), unavailable (it isn't here, or we have the older map).
  Result<Group*> find(engine::GroupId group, uint64_t client_epoch = 0);
  std::vector<Group*> groups() const;

 private:
  Loop& loop_;
  GroupMetrics metrics_;
  control::ClusterMap map_;
  std::map<engine::GroupId, std::unique_ptr<Group>> groups_;
};

}  // namespace cairn::replica
