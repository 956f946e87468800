// Group: one group's replica on its shard: a log, and the two state machines that it feeds.
//
//                    ┌─ chunks: the shard's chunk map
//   calls ──▶ Log ──▶┤                                          both applied in the log's order
//                    └─ kv: an ordered map (KvMachine) in the shard's store
//
// A write is refused, if at all, before it gets its place in the log (the shard's admission: space, journal); what has
// one takes effect. Conditions of a batch are looked at under latches, which are held until the batch is applied.
//
// One thread: the loop of the shard.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "engine/shard.h"
#include "kv/kv_machine.h"
#include "reactor/loop.h"
#include "reactor/sync.h"
#include "replica/lease_table.h"
#include "replica/log.h"

namespace cairn::replica {

// Of all groups of a reactor, registered before it runs.
struct GroupMetrics {
  explicit GroupMetrics(Registry& registry)
      : proposals(registry.counter("replica_proposals_total", "Entries proposed to groups")),
        refused(registry.counter("replica_refused_total", "Writes refused before they were proposed")),
        propose_us(
            registry.histogram("replica_propose_seconds", "From proposal to its end: durable, committed, applied")) {}

  Counter& proposals;
  Counter& refused;
  Histogram& propose_us;
};

struct GroupStatus {
  engine::GroupId group;
  bool leads = false;
  engine::Term term;
  engine::Index last_index;
  engine::Index applied_index;
  Result<void> health;
  engine::SpaceUsage usage;  // of the shard, which other groups share
};

class Group final : private StateMachine {
 public:
  // All outlive the group.
  struct Context {
    Loop& loop;
    GroupMetrics& metrics;
    engine::Shard& shard;
    kv::OrderedStore& store;  // the shard's
  };

  // Applies what the shard recovered of this group. A group whose state can't be had is returned all the same: it
  // answers everything with the reason.
  static Task<std::unique_ptr<Group>> open(Context context, engine::GroupId id);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  // Closed before.
  ~Group();

  // Refuses what comes with Errc::unavailable and waits for what is under way.
  Task<void> close();

  engine::GroupId id() const { return id_; }
  GroupStatus status() const;

  // Chunks. Errors of writes: no_space, busy, invalid_argument, device_fenced, corrupt, unavailable, the token's reason
  // (nothing happened); after io_error or closed the outcome is unknown.
  Task<Result<void>> chunk_write(engine::ChunkId chunk, uint32_t offset, mem::BufChain data, CancelToken cancel);
  Task<Result<void>> chunk_delete(engine::ChunkId chunk, CancelToken cancel);
  Task<Result<mem::BufChain>> chunk_read(engine::ChunkId chunk, uint32_t offset, uint32_t length, CancelToken cancel,
                                         mem::Purpose purpose);
  // Of the shard's chunks those of this group.
  Task<Result<std::vector<engine::ChunkId>>> chunk_list(engine::ChunkId after, size_t limit, CancelToken cancel);

  // The ordered map. condition_failed: the message is the number of the first condition that doesn't hold.
  Task<Result<std::optional<std::string>>> kv_get(std::string key, CancelToken cancel);
  Task<Result<kv::ScanResult>> kv_scan(kv::ScanOptions options, CancelToken cancel);
  Task<Result<void>> kv_batch(kv::Batch batch, mem::Purpose purpose, CancelToken cancel);

  Result<LeaseTable*> leases();

  // The part of the shard's store that is this group's.
  static std::string store_prefix(engine::GroupId id);

 private:
  class UnderWay;

  Group(Context context, engine::GroupId id);
  Task<Result<void>> recover();
  Task<Result<void>> apply(Committed entry) override;

  Result<void> open_for_calls() const;
  // Errc::ok while this replica takes writes.
  Result<void> serving() const;
  Task<Result<void>> before_read(CancelToken cancel);
  Task<Result<void>> propose(engine::Entry entry, mem::Purpose purpose, CancelToken cancel);

  Context context_;
  engine::GroupId id_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<kv::KvMachine> kv_;
  LeaseTable leases_;
  std::optional<Error> failed_;  // couldn't be opened
  bool closing_ = false;
  size_t under_way_ = 0;
  Event idle_;
};

}  // namespace cairn::replica
