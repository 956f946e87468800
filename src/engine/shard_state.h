// What the parts of a shard share. Each part changes what its own header says and nothing else.
//
//   append (shard_impl) ─▶ Journal ─▶ apply: Applier ─▶ chunks, dirty, cache, space
//                                     reads: Reader  ─▶ looks at all of them
//                                     Checkpointer   ─▶ moves dirty pages home, chunks to the store, the tail ahead
#pragma once

#include <optional>

#include "engine/checkpoint_pace.h"
#include "engine/chunk_map.h"
#include "engine/dirty_pages.h"
#include "engine/geometry.h"
#include "engine/group_log.h"
#include "engine/map_image.h"
#include "engine/metrics.h"
#include "engine/page_cache.h"
#include "engine/shard.h"
#include "engine/space.h"
#include "engine/superblock.h"

namespace cairn::engine {

struct ShardState {
  ShardState(const Shard::Context& its_context, const ShardExtent& its_extent, const ShardLayout& its_layout,
             const ShardOptions& its_options)
      : context(its_context),
        extent(its_extent),
        layout(its_layout),
        options(its_options),
        metrics(its_context.registry, its_extent.device, its_extent.shard),
        image(chunks),
        space(its_layout.unit_count, reserve_units(its_layout.unit_count)),
        dirty(its_options.dirty_bytes),
        cache(its_options.cache_bytes, metrics.cache_bytes) {}
  ShardState(const ShardState&) = delete;
  ShardState& operator=(const ShardState&) = delete;

  // One percent, and enough for what is under way at any time on a small shard.
  static uint32_t reserve_units(uint32_t unit_count) {
    return std::max(unit_count / 100, std::min(16u, unit_count / 8));
  }

  // After a change of what is dirty.
  void share_memory() {
    const uint64_t dirty_now = dirty.memory_bytes();
    cache.set_limit(options.cache_bytes > dirty_now ? options.cache_bytes - dirty_now : 0);
  }
  void update_space_metrics() {
    metrics.free_bytes.set(static_cast<int64_t>(space.free() * kUnitBytes));
    metrics.used_bytes.set(static_cast<int64_t>((space.used() + space.pending()) * kUnitBytes));
    metrics.freeing_bytes.set(static_cast<int64_t>(space.freeing() * kUnitBytes));
    metrics.dirty_bytes.set(static_cast<int64_t>(dirty.memory_bytes()));
  }
  void set_damage(Error why) {
    if (damage) return;
    metrics.damaged.set(1);
    damage = std::move(why);
  }

  const Shard::Context context;
  const ShardExtent extent;
  const ShardLayout layout;
  const ShardOptions options;
  ShardMetrics metrics;

  ChunkMap chunks;
  MapImage image;
  Space space;
  DirtyPages dirty;
  PageCache cache;
  CheckpointPace pace;
  GroupLogs groups;
  Superblock superblock;        // the last one written
  uint64_t applies = 0;         // entries applied in this life, or found applied when it began
  uint64_t saved_applies = 0;   // of these, the ones whose groups' marks a checkpoint has written
  std::optional<Error> damage;  // the shard serves nothing
};

}  // namespace cairn::engine
