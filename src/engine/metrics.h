// What a shard counts. Registered once per shard, under the label shard="N".
#pragma once

#include <cstdint>

#include "base/id.h"
#include "base/metrics.h"

namespace cairn::engine {

struct ShardMetrics {
  ShardMetrics(Registry& registry, Id128 device, uint32_t shard);

  Counter& journal_bytes;  // batches, their inline payload included
  Counter& payload_bytes;  // large writes to units
  Counter& home_bytes;     // small writes to their homes
  Counter& batches;
  Counter& batch_entries;
  Counter& flushes;
  Counter& read_bytes;  // from the device
  Counter& cache_hits;  // pages
  Counter& cache_misses;
  Counter& corrupt_pages;
  Counter& cut_entries;  // at opening, from the journal's end
  Counter& discarded_bytes;
  Counter& admission_waits;
  Counter& checkpoints;
  Counter& checkpoint_failures;
  Histogram& checkpoint_us;
  Gauge& cache_bytes;
  Gauge& dirty_bytes;   // applied small writes held in memory
  Gauge& journal_used;  // bytes
  Gauge& free_bytes;
  Gauge& used_bytes;
  Gauge& freeing_bytes;
  Gauge& fenced;   // 1: a write or flush failed
  Gauge& damaged;  // 1: the journal can't be read
};

}  // namespace cairn::engine
