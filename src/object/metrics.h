// What the object layer counts, once per reactor, registered before it runs.
#pragma once

#include "base/metrics.h"

namespace cairn::object {

struct Metrics {
  explicit Metrics(Registry& registry)
      : commits(registry.counter("object_commits_total", "Changes made visible: objects, parts, deletes")),
        conflicts(registry.counter("object_commit_conflicts_total", "Commits tried again because of another one")),
        discarded(registry.counter("object_discarded_total", "Data of uncommitted writers given back")),
        unknown_outcomes(
            registry.counter("object_unknown_outcomes_total", "Commits whose fate could not be found out")),
        leases(registry.counter("object_reader_leases_total", "Lease renewals of readers that took longer")) {}

  Counter& commits;
  Counter& conflicts;
  Counter& discarded;
  Counter& unknown_outcomes;
  Counter& leases;
};

struct JanitorMetrics {
  explicit JanitorMetrics(Registry& registry)
      : reaped(registry.counter("object_reaped_total", "Delete queue items done")),
        reaped_chunks(registry.counter("object_reaped_chunks_total", "Chunks deleted from the delete queue")),
        swept_chunks(registry.counter("object_swept_chunks_total", "Chunks deleted that a crash had left behind")),
        sweeps(registry.counter("object_sweeps_total", "Dead write sessions cleaned up")) {}

  Counter& reaped;
  Counter& reaped_chunks;
  Counter& swept_chunks;
  Counter& sweeps;
};

}  // namespace cairn::object
