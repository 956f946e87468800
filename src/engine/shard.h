// Shard: one part of a device, owned by one reactor: a journal that is also the log of all groups on the shard, an
// allocator, the chunk map and its checkpoints. docs/on-disk-format.md has the layout byte by byte.
//
//   CO_TRY(auto permit, co_await shard.admit(entry, purpose, token));   // refused here or never
//   entry.index = next_index++;
//   CO_TRY(co_await shard.append(std::move(entry), std::move(permit)));  // durable, nothing visible has changed
//   shard.apply(entry);                                                  // once committed: reads see it
//
// With one replica a durable entry is committed, and the group applies it at once. Raft will put a vote between the
// two.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "engine/block_device.h"
#include "engine/permit.h"
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
  // Pages kept in memory: those just below, and in what they leave the ones that were read or written lately.
  uint64_t cache_bytes = 64 << 20;
  // Applied small writes kept in memory until they are home; beyond this they are read back from the journal.
  uint64_t dirty_bytes = 48 << 20;
  Duration checkpoint_interval = seconds(30);
  // How long admit() waits for a full journal or for units that a checkpoint will free, and how many may wait.
  Duration admission_wait = seconds(10);
  size_t admission_queue = 4096;
};

struct ChunkStat {
  uint32_t size = 0;    // bytes, the end of the furthest write
  Index last_change{};  // of its group
  GroupId group{};
};

// Adds up: total = free + used + pending + freeing.
struct SpaceUsage {
  uint64_t total_bytes = 0;    // data area
  uint64_t free_bytes = 0;     // units that can be allocated, the reserve and what permits hold included
  uint64_t used_bytes = 0;     // units that hold live data
  uint64_t pending_bytes = 0;  // units of entries that are not applied yet
  uint64_t freeing_bytes = 0;  // units that become free with the next checkpoint
  uint64_t reserve_bytes = 0;  // kept back from client writes
};

// In the store, keys that start with this byte are the engine's; all others are the key-value machine's.
inline constexpr char kEngineKeyByte = '\0';

class Shard {
 public:
  // All outlive the shard.
  struct Context {
    Loop& loop;
    Registry& registry;
    mem::Pool& pool;
    BlockDevice& device;
    kv::OrderedStore& store;  // this shard's own; the key-value machine of its groups writes to the same one
  };

  // Writes superblocks and an empty journal into the extent.
  static Task<Result<void>> format(Context context, ShardExtent extent);
  // Loads the checkpoint and replays the journal. A journal or store that contradicts itself gives a damaged shard (see
  // health()), not an error; an error means that there is nothing to work with (no superblock, I/O error, a store that
  // isn't this shard's).
  static Task<Result<std::unique_ptr<Shard>>> open(Context context, ShardExtent extent, ShardOptions options);

  virtual ~Shard() = default;

  // In journal order, every entry whose effect is neither in the chunk map's checkpoint nor, for kv_batch, in the store
  // (applied_mark): the groups decide what of it is committed and apply it before they serve. Indexes of a group
  // ascend, but kv entries that the store has already are left out. Payload is left out too: apply() knows where it
  // lies.
  virtual const std::vector<Entry>& recovered() const = 0;
  virtual void forget_recovered() = 0;
  // The last index of the group's log that this shard knows, and the last one that is applied.
  virtual Index last_index(GroupId group) const = 0;
  virtual Index applied_index(GroupId group) const = 0;

  // Takes what the entry needs (its index and term don't matter yet), so that nothing that has an index is refused.
  // Waits, in the order of the calls, while the journal is full or a checkpoint is about to free units; bounded.
  // Deletes, discards and kv batches need no units and may use the journal's reserve, so a full shard takes them.
  // Errors: no_space (a client's write, below the reserve), busy (waited too long, or too many wait), invalid_argument
  // (could never be taken), device_fenced, corrupt (damaged), closed, the token's reason.
  virtual Task<Result<Permit>> admit(const Entry& entry, mem::Purpose purpose, CancelToken token = {}) = 0;
  // Durable when it returns ok, payload included. Entries of one group come in index order without gaps (call in order;
  // awaiting may overlap) and are acknowledged in order. Errors: device_fenced (a write or flush failed: the outcome is
  // unknown, and the shard takes no more until it is opened anew).
  virtual Task<Result<void>> append(Entry entry, Permit permit) = 0;
  // In index order per group, each durable entry once. Can't fail. Of `entry` only group and index count, so a
  // moved-from one will not do.
  void apply(const Entry& entry) { apply(entry.group, entry.index); }
  virtual void apply(GroupId group, Index index) = 0;
  // What the key-value machine must put into the store with the effects of (group, index), in the same write, before it
  // calls apply().
  virtual kv::Mutation applied_mark(GroupId group, Index index) const = 0;

  // Bytes [offset, offset + length) of the chunk, cut at its end, checked against their CRCs. Holes read as zeroes. The
  // result shares the cache's memory and may start inside a page. Errors: not_found, corrupt, io_error.
  virtual Task<Result<mem::BufChain>> read(ChunkId chunk, uint32_t offset, uint32_t length, CancelToken token = {},
                                           mem::Purpose purpose = mem::Purpose::client) = 0;
  virtual std::optional<ChunkStat> stat(ChunkId chunk) const = 0;
  // Up to `limit` ids greater than `after`, ascending.
  virtual std::vector<ChunkId> list(ChunkId after, size_t limit) const = 0;

  virtual SpaceUsage usage() const = 0;
  // Errc::ok, or why the shard is fenced (device_fenced: reads go on) or damaged (corrupt: the journal below LSN x is
  // unreadable, so nothing that it serves would be sure to be the last that was acknowledged; it serves nothing).
  virtual Result<void> health() const = 0;
  // Another shard of the same device failed a write or flush.
  virtual void fence(Error why) = 0;

  // Writes small writes home and the changed maps to the store, then frees journal and units. Runs by itself when the
  // journal fills, when free units run low, by time, and at close().
  virtual Task<Result<void>> checkpoint() = 0;
  // Refuses what comes, ends what is under way, makes a last checkpoint. Call once, before the destructor.
  virtual Task<void> close() = 0;
};

}  // namespace cairn::engine
