// EngineWorld: a shard on a simulated disk and store, the groups that use it, and the model of what it must hold.
//
// Stands in for the group host: it gives entries their index and term, waits for them to be durable, and applies them
// in order, at once or after a while (as if a vote took that long). Group `g` has chunks of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "engine/geometry.h"
#include "engine/shard.h"
#include "kv/kv_machine.h"
#include "kv/memory_store.h"
#include "mem/pool.h"
#include "reactor/sync.h"
#include "scenarios/engine_model.h"
#include "scenarios/scenario.h"
#include "sim/check.h"
#include "sim/fault_plan.h"
#include "sim/sim_disk.h"
#include "sim/simulator.h"

namespace cairn::scenarios {

// How big everything is: small, so that a seed takes milliseconds and everything fills up now and then.
struct EngineSizes {
  uint32_t groups = 1;
  uint32_t chunks = 8;       // ids in use
  uint32_t chunk_bytes = 0;  // the largest chunk
  uint64_t data_bytes = 0;   // of the shard's data area, about
  engine::ShardOptions options{};
  Duration apply_delay_max{};  // between durable and applied

  static EngineSizes draw(Rng& rng);
};

class EngineWorld {
 public:
  explicit EngineWorld(const RunInput& input);
  EngineWorld(const EngineWorld&) = delete;
  EngineWorld& operator=(const EngineWorld&) = delete;
  ~EngineWorld();

  struct Group {
    Group(EngineWorld& world, engine::GroupId group);
    engine::GroupId id;
    uint64_t durable = 0;  // the last entry that was acknowledged
    // The last one that was acknowledged before an entry was proposed (of any group) that is acknowledged, too: the
    // journal says of it that it was durable, so no damage elsewhere may make the shard take it for unfinished.
    uint64_t proven = 0;
    Semaphore turn;  // applies one at a time, in the order of acknowledgement
    std::unique_ptr<kv::KvMachine> kv;
  };

  // --- Life cycle; each runs the simulation until it is done ---
  Result<void> format();
  // Opens the shard and the groups, and applies what was recovered. An error is the shard's.
  Result<void> open();
  // Power is lost: what survives is decided now, and everything fails from now on.
  void power_off(CrashStyle style);
  void power_on();
  // Ends the shard. With the power off it fails inside, which is its business.
  void close();

  // --- For coroutines ---
  // Admit, append, apply. ok: applied (and durable). Errors: the shard's; after any but a refusal by admit(), the fate
  // of the entry is for the next open() to tell.
  Task<Result<void>> propose(Group& group, LogOp op, mem::BufChain payload, mem::Purpose purpose, CancelToken cancel);

  bool powered() const { return powered_; }
  Group& group_of(engine::ChunkId chunk) { return *groups_[chunk.bytes[15] % groups_.size()]; }
  engine::ChunkId chunk_id(uint32_t number) const;
  engine::ShardExtent extent() const;

  // Declared in the order of their dependence.
  const RunInput& input;
  Simulator sim;
  SimLoop loop;
  SeededRng rng;  // of the scenario itself
  FaultPlan plan;
  EngineSizes sizes;
  Check check;
  Coverage coverage;
  uint64_t extent_offset = 0;
  SimDisk disk;
  kv::MemoryStore store;
  EngineModel model;

  // Damage beyond repair so far: how many pages may be reported as corrupt, and whether the journal may be.
  uint64_t rotten_pages = 0;
  uint64_t damaged_pages_max() const {
    return rotten_pages + 2 * disk.stats().lied_pages;  // a misdirected write spoils two places
  }
  bool journal_damage_possible = false;
  // The shard said so in this life: it takes no more writes.
  bool fenced = false;

  std::unique_ptr<Registry> registry;  // of one life
  std::unique_ptr<mem::Pool> pool;
  std::unique_ptr<engine::Shard> shard;
  uint64_t life = 0;  // number of opens; the groups' term

  std::vector<std::unique_ptr<Group>>& groups() { return groups_; }
  std::string kv_prefix(engine::GroupId group) const;
  // The value of a shard's counter.
  uint64_t metric(std::string_view name) const;

 private:
  Task<Result<void>> open_task();
  Task<Result<void>> apply_recovered();
  Task<Result<void>> apply(Group& group, uint64_t index);
  void check_log_ends();
  // What `durable` is for each group.
  std::vector<uint64_t> acknowledged() const;
  void check_recovered(const engine::Entry& entry);
  engine::Shard::Context context();

  bool powered_ = true;
  std::vector<std::unique_ptr<Group>> groups_;
};

}  // namespace cairn::scenarios
