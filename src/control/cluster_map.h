// ClusterMap: which nodes, devices and groups there are, and where each group's replicas live. Small and explicit: a
// value that is copied, compared and handed around; whoever changes it makes a new one with the next epoch.
//
//   group ──▶ replicas ──▶ (device, shard) ──▶ node ──▶ poll group
//
// Shards of a node are numbered through its devices in the map's order; shard s is served by poll group s modulo the
// node's poll groups. So a node may be started with another number of reactors without moving any data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/status.h"
#include "control/placement.h"
#include "engine/types.h"

namespace cairn::control {

struct NodeEntry {
  Id128 id;
  std::string name;
  std::string address;  // of its SRPC port: "10.0.0.7:7400"
  uint16_t poll_groups = 1;

  bool operator==(const NodeEntry&) const = default;
};

struct DeviceEntry {
  Id128 id;
  Id128 node;
  uint32_t shards = 0;

  bool operator==(const DeviceEntry&) const = default;
};

struct ReplicaEntry {
  Id128 device;
  uint32_t shard = 0;

  bool operator==(const ReplicaEntry&) const = default;
};

struct GroupEntry {
  uint64_t epoch = 0;  // of the map that last changed it: a request made with an older map is refused
  std::vector<ReplicaEntry> replicas;

  bool operator==(const GroupEntry&) const = default;
};

struct ClusterMap {
  Id128 cluster;
  uint64_t epoch = 0;  // 0: no map
  std::vector<NodeEntry> nodes;
  std::vector<DeviceEntry> devices;
  std::vector<GroupEntry> groups;  // by number

  bool operator==(const ClusterMap&) const = default;

  uint32_t group_count() const { return static_cast<uint32_t>(groups.size()); }
  engine::GroupId group_of_chunk(const engine::ChunkId& chunk) const { return group_of(chunk, group_count()); }
  engine::GroupId group_of_key(const Id128& salt) const { return group_of(salt, group_count()); }

  const NodeEntry* find_node(const Id128& id) const;
  const DeviceEntry* find_device(const Id128& id) const;
  // Null: no such group.
  const GroupEntry* find_group(engine::GroupId group) const {
    return group.value < groups.size() ? &groups[group.value] : nullptr;
  }

  struct Location {
    Id128 node;
    Id128 device;
    uint32_t shard = 0;
    uint16_t poll_group = 0;
  };
  // None: the map doesn't know the device or node (never of a map that has been checked).
  std::optional<Location> locate(const ReplicaEntry& replica) const;
  // Of the group's first replica, which leads it as long as there is only one.
  std::optional<Location> locate(engine::GroupId group) const;

  // Everything that is referred to exists, once. Errors: invalid_argument, naming what is wrong.
  Result<void> check() const;

  std::string encode() const;
  // Checked. Errors: corrupt, unsupported.
  static Result<ClusterMap> decode(std::string_view bytes);
};

// The first map of a cluster of one node: group g on shard g modulo the shards of all its devices.
Result<ClusterMap> make_single_node_map(Id128 cluster, NodeEntry node, std::vector<DeviceEntry> devices,
                                        uint32_t groups = kDefaultGroups);

}  // namespace cairn::control
