#include "engine/metrics.h"

#include <fmt/format.h>

namespace cairn::engine {
namespace {

struct Labelled {
  Registry& registry;
  std::string labels;

  Counter& counter(std::string_view name, std::string_view help) { return registry.counter(name, help, labels); }
  Gauge& gauge(std::string_view name, std::string_view help) { return registry.gauge(name, help, labels); }
  Counter& bytes(std::string_view kind) {
    return registry.counter("engine_written_bytes_total", "Bytes written to the device, by what they are",
                            labels + fmt::format(",kind=\"{}\"", kind));
  }
  Gauge& space(std::string_view state) {
    return registry.gauge("engine_space_bytes", "Bytes of the data area, by what they hold",
                          labels + fmt::format(",state=\"{}\"", state));
  }
};

Labelled labelled(Registry& registry, Id128 device, uint32_t shard) {
  return {registry, fmt::format("device=\"{}\",shard=\"{}\"", device.to_string().substr(0, 8), shard)};
}

}  // namespace

ShardMetrics::ShardMetrics(Registry& registry, Id128 device, uint32_t shard)
    : journal_bytes(labelled(registry, device, shard).bytes("journal")),
      payload_bytes(labelled(registry, device, shard).bytes("payload")),
      home_bytes(labelled(registry, device, shard).bytes("home")),
      batches(labelled(registry, device, shard).counter("engine_batches_total", "Journal writes")),
      batch_entries(
          labelled(registry, device, shard).counter("engine_batch_entries_total", "Entries in journal writes")),
      flushes(labelled(registry, device, shard).counter("engine_flushes_total", "Flushes of the device")),
      read_bytes(labelled(registry, device, shard).counter("engine_read_bytes_total", "Bytes read from the device")),
      cache_hits(labelled(registry, device, shard).counter("engine_cache_hits_total", "Pages read from memory")),
      cache_misses(
          labelled(registry, device, shard).counter("engine_cache_misses_total", "Pages read from the device")),
      corrupt_pages(labelled(registry, device, shard)
                        .counter("engine_corrupt_pages_total", "Pages whose bytes did not match their checksum")),
      cut_entries(labelled(registry, device, shard)
                      .counter("engine_cut_entries_total",
                               "Entries at the journal's end that a crash left unfinished, cut at opening")),
      discarded_bytes(labelled(registry, device, shard).counter("engine_discarded_bytes_total", "Bytes discarded")),
      admission_waits(labelled(registry, device, shard)
                          .counter("engine_admission_waits_total", "Entries that had to wait for journal or units")),
      checkpoints(labelled(registry, device, shard).counter("engine_checkpoints_total", "Checkpoints completed")),
      checkpoint_failures(
          labelled(registry, device, shard).counter("engine_checkpoint_failures_total", "Checkpoints that failed")),
      checkpoint_us(labelled(registry, device, shard)
                        .registry.histogram("engine_checkpoint_seconds", "Duration of checkpoints",
                                            labelled(registry, device, shard).labels)),
      cache_bytes(labelled(registry, device, shard).gauge("engine_cache_bytes", "Bytes in the page cache")),
      dirty_bytes(labelled(registry, device, shard)
                      .gauge("engine_dirty_bytes", "Small writes in memory that are not at their home yet")),
      journal_used(
          labelled(registry, device, shard).gauge("engine_journal_used_bytes", "Journal that a replay would read")),
      free_bytes(labelled(registry, device, shard).space("free")),
      used_bytes(labelled(registry, device, shard).space("used")),
      freeing_bytes(labelled(registry, device, shard).space("freeing")),
      fenced(labelled(registry, device, shard)
                 .gauge("engine_fenced", "1 after a failed write or flush: the shard takes no more writes")),
      damaged(labelled(registry, device, shard).gauge("engine_damaged", "1 when the journal can't be read")) {}

}  // namespace cairn::engine
