// Shard: one part of a device, owned by one reactor: a journal that is also the log of all groups on the shard, an
// allocator, the chunk map and its checkpoints. docs/on-disk-format.md has the layout byte by byte.
//
//   append(entry)   the entry is durable in the journal (its payload too). Nothing that was acknowledged before is
//   touched. apply(...)      a committed entry takes effect: reads see it.
//
// With one replica a durable entry is committed, and the group applies it at once. Raft will put a vote between the
// two.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "engine/block_device.h"
#include "engine/types.h"
#include "kv/ordered_store.h"
#include "mem/pool.h"
#include "reactor/loop.h"
#include "reactor/task.h"

namespace cairn::engine {

// Where a shard lies on its device; from the device header (device.h).
struct ShardExtent {
  Id128 device;
  uint32_t shard = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t journal_bytes = 0;
};

struct ShardOptions {
  uint64_t cache_bytes = 64 << 20;
  Duration checkpoint_interval = seconds(30);
};

struct ChunkStat {
  uint32_t size = 0;    // bytes, the end of the last write
  Index last_change{};  // of its group
  GroupId group{};
};

struct SpaceUsage {
  uint64_t total_bytes = 0;    // data area
  uint64_t used_bytes = 0;     // units that hold live data
  uint64_t freeing_bytes = 0;  // units that become free with the next checkpoint
  uint64_t reserve_bytes = 0;  // kept back from client writes
};

class Shard {
 public:
  struct Context {
    Loop& loop;
    Registry& registry;
    mem::Pool& pool;
    BlockDevice& device;
    kv::OrderedStore& store;  // this shard's own key range; see also `durable position` in shard.cc
  };

  // Writes superblocks and an empty journal into the extent.
  static Task<Result<void>> format(Context context, ShardExtent extent);
  // Loads the checkpoint and replays the journal. Afterwards `recovered()` lists, in journal order, every entry of each
  // group that the last checkpoint doesn't cover; the groups decide what of it is committed and apply it before they
  // serve.
  static Task<Result<std::unique_ptr<Shard>>> open(Context context, ShardExtent extent, ShardOptions options);

  virtual ~Shard() = default;

  virtual const std::vector<Entry>& recovered() const = 0;
  virtual void forget_recovered() = 0;
  // The last index of the group's log that this shard knows, and the last one the checkpoint covers.
  virtual Index last_index(GroupId group) const = 0;
  virtual Index applied_index(GroupId group) const = 0;

  // Durable when it returns ok. Entries of one group are appended in index order (call in order; awaiting may overlap)
  // and acknowledged in order. Errors: no_space (client purpose, below the reserve; nothing was written), busy (too
  // much waits), device_fenced (a write or flush failed: the outcome is unknown, the shard takes no more).
  virtual Task<Result<void>> append(Entry entry, mem::Purpose purpose) = 0;
  // In index order per group, each appended entry once. Can't fail.
  virtual void apply(const Entry& entry) = 0;
  // What the key-value machine must put into the store with the effects of (group, index), so that a restart knows what
  // is applied.
  virtual kv::Mutation applied_mark(GroupId group, Index index) const = 0;

  // Bytes [offset, offset + length) of the chunk, cut at its end, checked against their CRCs. Holes read as zeroes. The
  // result shares the cache's memory and may start inside a page. Errors: not_found, corrupt, io_error.
  virtual Task<Result<mem::BufChain>> read(ChunkId chunk, uint32_t offset, uint32_t length, CancelToken token = {}) = 0;
  virtual std::optional<ChunkStat> stat(ChunkId chunk) const = 0;
  // Up to `limit` ids greater than `after`, ascending.
  virtual std::vector<ChunkId> list(ChunkId after, size_t limit) const = 0;

  virtual SpaceUsage usage() const = 0;
  // Errc::ok, or why the shard is fenced or damaged.
  virtual Result<void> health() const = 0;

  // Writes small writes home and the changed maps to the store, then frees journal and units. Runs by itself when the
  // journal fills, by time, and at close().
  virtual Task<Result<void>> checkpoint() = 0;
  virtual Task<void> close() = 0;
};

}  // namespace cairn::engine
