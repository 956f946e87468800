// NodeWorld: a whole storage node in the simulator: StorageNode (shards, groups, SRPC in process, client, object store,
// janitor) on one reactor, two shards on one SimDisk, and one MemoryStore that both share, as they share a RocksDB.
#pragma once

#include <memory>
#include <vector>

#include "base/metrics.h"
#include "kv/memory_store.h"
#include "kv/prefix_store.h"
#include "mem/pool.h"
#include "node/storage_node.h"
#include "scenarios/scenario.h"
#include "sim/check.h"
#include "sim/fault_plan.h"
#include "sim/sim_disk.h"
#include "sim/simulator.h"

namespace cairn::scenarios {

class NodeWorld {
 public:
  explicit NodeWorld(const RunInput& input);
  NodeWorld(const NodeWorld&) = delete;
  NodeWorld& operator=(const NodeWorld&) = delete;
  ~NodeWorld();

  Result<void> format();
  Result<void> start();
  void power_off(CrashStyle style);
  void power_on();
  // An orderly stop when the power is on. Whoever uses the node has ended.
  void stop();
  bool powered() const { return powered_; }
  // Bytes of the data areas that hold something, of all shards.
  uint64_t used_bytes() const;

  object::ObjectStore& objects() { return node->objects(); }

  const RunInput& input;
  Simulator sim;
  SimLoop loop;
  SeededRng rng;
  FaultPlan plan;
  Check check;
  Coverage coverage;
  uint64_t data_bytes;  // of each shard, about
  engine::ShardOptions shard_options;
  SimDisk disk;
  kv::MemoryStore store;
  std::unique_ptr<Registry> registry;
  std::unique_ptr<mem::Pool> pool;
  std::unique_ptr<node::StorageNode> node;
  uint64_t life = 0;

  static constexpr uint32_t kShards = 2;
  static constexpr uint32_t kGroups = 6;

 private:
  // Simulated calendar time: it goes on through restarts.
  class SimWallClock final : public WallClock {
   public:
    explicit SimWallClock(const Simulator& simulator) : simulator_(simulator) {}
    int64_t unix_ns() const override { return 1'800'000'000'000'000'000 + simulator_.now().ns; }

   private:
    const Simulator& simulator_;
  };
  // There is no other reactor and no other node.
  class Nowhere final : public client::SrpcClient::Connectors {
   public:
    std::unique_ptr<srpc::Connector> make(const control::NodeEntry& node, uint16_t poll_group) override;
  };

  engine::ShardExtent extent(uint32_t shard) const;
  Task<Result<void>> format_task();
  Task<Result<void>> start_task();
  void new_life();

  SimWallClock wall_{sim};
  Nowhere nowhere_;
  control::ClusterMap map_;
  std::vector<std::unique_ptr<kv::PrefixStore>> views_;
  bool powered_ = true;
};

}  // namespace cairn::scenarios
