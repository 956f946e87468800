// NodeView: what the admin API asks of the node it runs in. The node implements it by asking its reactors; tests have a
// fake.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/status.h"
#include "object/sweep.h"
#include "reactor/task.h"

namespace cairn::admin {

struct ReactorStatus {
  uint32_t id = 0;
  std::string mode;         // "performance", "economy", "automatic"
  double busy_share = 0;    // of the time since start: doing work
  double asleep_share = 0;  // waiting in the kernel; what is left was spent polling
  uint64_t arena_bytes = 0;
  uint64_t arena_free_bytes = 0;
};

struct ShardStatus {
  uint32_t id = 0;
  uint32_t reactor = 0;
  uint64_t total_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t freeing_bytes = 0;
  uint64_t reserve_bytes = 0;
  std::string health;  // "ok", or why not
};

struct DeviceStatus {
  Id128 id;
  std::string path;
  uint64_t size_bytes = 0;
  std::vector<ShardStatus> shards;
};

struct GroupStatus {
  uint32_t id = 0;
  uint32_t shard = 0;
  uint64_t last_index = 0;
  uint64_t applied_index = 0;
  std::string role;    // "leader", "stopped"
  std::string health;  // "ok", or why not
};

struct GatewayStatus {
  std::string service;
  std::string address;
};

struct NodeStatus {
  Id128 cluster_id;
  Id128 node_id;
  uint64_t uptime_seconds = 0;
  uint32_t replicas = 1;
  std::vector<ReactorStatus> reactors;
  std::vector<DeviceStatus> devices;
  std::vector<GroupStatus> groups;
  std::vector<GatewayStatus> gateways;
};

struct ConfigRow {
  std::string name;
  std::string value;
  std::string default_value;
  std::string origin;
  std::string type;
  std::string help;
};

class NodeView {
 public:
  virtual ~NodeView() = default;

  virtual Task<Result<NodeStatus>> status() = 0;
  virtual std::vector<ConfigRow> config() const = 0;
  // Prometheus text of all reactors.
  virtual std::string metrics() = 0;
  // Errc::ok when the node serves; else why not.
  virtual Result<void> ready() const = 0;
  virtual Task<Result<void>> checkpoint() = 0;
  virtual Task<Result<object::OrphanReport>> check_orphans() = 0;
};

}  // namespace cairn::admin
