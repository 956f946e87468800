#include "control/cluster_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "control/cluster_map.pb.h"
#include "control/sealed.h"

namespace cairn::control {
namespace {

constexpr uint8_t kSealType = 1;
constexpr uint8_t kVersion = 1;
// Far above what is planned for; keeps a damaged or hostile map from being worked with.
constexpr uint32_t kMaxNodes = 4096;
constexpr uint32_t kMaxDevices = 65'536;

std::string to_bytes(const Id128& id) { return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()}; }

Result<Id128> to_id(const std::string& bytes) {
  Id128 id;
  if (bytes.size() != id.bytes.size()) return Error(Errc::corrupt, "cluster map: an id of wrong size");
  std::ranges::copy(bytes, id.bytes.begin());
  return id;
}

Error wrong(std::string what) { return {Errc::invalid_argument, "cluster map: " + std::move(what)}; }

}  // namespace

const NodeEntry* ClusterMap::find_node(const Id128& id) const {
  const auto found = std::ranges::find(nodes, id, &NodeEntry::id);
  return found == nodes.end() ? nullptr : &*found;
}

const DeviceEntry* ClusterMap::find_device(const Id128& id) const {
  const auto found = std::ranges::find(devices, id, &DeviceEntry::id);
  return found == devices.end() ? nullptr : &*found;
}

std::optional<ClusterMap::Location> ClusterMap::locate(const ReplicaEntry& replica) const {
  const DeviceEntry* device = find_device(replica.device);
  const NodeEntry* node = device == nullptr ? nullptr : find_node(device->node);
  if (node == nullptr) return std::nullopt;
  uint32_t number = replica.shard;
  for (const DeviceEntry& other : devices) {
    if (&other == device) break;
    if (other.node == node->id) number += other.shards;
  }
  return Location{.node = node->id,
                  .device = device->id,
                  .shard = replica.shard,
                  .poll_group = static_cast<uint16_t>(number % node->poll_groups)};
}

std::optional<ClusterMap::Location> ClusterMap::locate(engine::GroupId group) const {
  const GroupEntry* entry = find_group(group);
  if (entry == nullptr || entry->replicas.empty()) return std::nullopt;
  return locate(entry->replicas.front());
}

Result<void> ClusterMap::check() const {
  if (epoch == 0) return wrong("epoch 0");
  if (nodes.empty() || nodes.size() > kMaxNodes) return wrong(fmt::format("{} nodes", nodes.size()));
  if (devices.empty() || devices.size() > kMaxDevices) return wrong(fmt::format("{} devices", devices.size()));
  if (groups.empty() || groups.size() > kMaxGroups) return wrong(fmt::format("{} groups", groups.size()));
  std::set<Id128> ids;
  for (const NodeEntry& node : nodes) {
    if (node.id.is_zero() || !ids.insert(node.id).second) return wrong("two nodes with one id");
    if (node.poll_groups == 0) return wrong(fmt::format("node '{}' has no poll groups", node.name));
  }
  for (const DeviceEntry& device : devices) {
    if (device.id.is_zero() || !ids.insert(device.id).second) return wrong("two devices with one id");
    if (find_node(device.node) == nullptr) return wrong("a device of an unknown node");
    if (device.shards == 0) return wrong("a device without shards");
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    const GroupEntry& group = groups[i];
    if (group.replicas.empty()) return wrong(fmt::format("group {} has no replica", i));
    if (group.epoch > epoch) return wrong(fmt::format("group {} is newer than the map", i));
    std::set<Id128> used;
    for (const ReplicaEntry& replica : group.replicas) {
      const DeviceEntry* device = find_device(replica.device);
      if (device == nullptr || replica.shard >= device->shards) {
        return wrong(fmt::format("group {} lives on a shard that doesn't exist", i));
      }
      if (!used.insert(replica.device).second) return wrong(fmt::format("group {} is twice on one device", i));
    }
  }
  return {};
}

std::string ClusterMap::encode() const {
  proto::Map message;
  message.set_cluster(to_bytes(cluster));
  message.set_epoch(epoch);
  for (const NodeEntry& node : nodes) {
    proto::Node& out = *message.add_nodes();
    out.set_id(to_bytes(node.id));
    out.set_name(node.name);
    out.set_address(node.address);
    out.set_poll_groups(node.poll_groups);
  }
  for (const DeviceEntry& device : devices) {
    proto::Device& out = *message.add_devices();
    out.set_id(to_bytes(device.id));
    out.set_node(to_bytes(device.node));
    out.set_shards(device.shards);
  }
  for (const GroupEntry& group : groups) {
    proto::Group& out = *message.add_groups();
    out.set_epoch(group.epoch);
    for (const ReplicaEntry& replica : group.replicas) {
      proto::Replica& added = *out.add_replicas();
      added.set_device(to_bytes(replica.device));
      added.set_shard(replica.shard);
    }
  }
  return seal(kSealType, kVersion, message.SerializeAsString());
}

Result<ClusterMap> ClusterMap::decode(std::string_view bytes) {
  TRY(const std::string_view record, unseal(kSealType, kVersion, "cluster map", bytes));
  proto::Map message;
  if (!message.ParseFromArray(record.data(), static_cast<int>(record.size()))) {
    return Error(Errc::corrupt, "cluster map: can't be parsed");
  }
  ClusterMap map;
  TRY(map.cluster, to_id(message.cluster()));
  map.epoch = message.epoch();
  for (const proto::Node& node : message.nodes()) {
    if (node.poll_groups() > UINT16_MAX) return Error(Errc::corrupt, "cluster map: too many poll groups");
    TRY(const Id128 id, to_id(node.id()));
    map.nodes.push_back({.id = id,
                         .name = node.name(),
                         .address = node.address(),
                         .poll_groups = static_cast<uint16_t>(node.poll_groups())});
  }
  for (const proto::Device& device : message.devices()) {
    TRY(const Id128 id, to_id(device.id()));
    TRY(const Id128 node, to_id(device.node()));
    map.devices.push_back({.id = id, .node = node, .shards = device.shards()});
  }
  for (const proto::Group& group : message.groups()) {
    GroupEntry entry{.epoch = group.epoch(), .replicas = {}};
    for (const proto::Replica& replica : group.replicas()) {
      TRY(const Id128 device, to_id(replica.device()));
      entry.replicas.push_back({.device = device, .shard = replica.shard()});
    }
    map.groups.push_back(std::move(entry));
  }
  if (Result<void> checked = map.check(); !checked) return Error(Errc::corrupt, checked.error().message());
  return map;
}

Result<ClusterMap> make_single_node_map(Id128 cluster, NodeEntry node, std::vector<DeviceEntry> devices,
                                        uint32_t groups) {
  ClusterMap map{
      .cluster = cluster, .epoch = 1, .nodes = {std::move(node)}, .devices = std::move(devices), .groups = {}};
  std::vector<ReplicaEntry> shards;
  for (const DeviceEntry& device : map.devices) {
    for (uint32_t shard = 0; shard < device.shards; ++shard) shards.push_back({.device = device.id, .shard = shard});
  }
  if (shards.empty()) return wrong("no shard to put groups on");
  for (uint32_t group = 0; group < groups; ++group) {
    map.groups.push_back({.epoch = map.epoch, .replicas = {shards[group % shards.size()]}});
  }
  TRY(map.check());
  return map;
}

}  // namespace cairn::control
