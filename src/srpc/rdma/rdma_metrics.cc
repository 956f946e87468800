#include "srpc/rdma/rdma_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace cairn::srpc::rdma {
namespace {

constexpr std::string_view kFailures = "srpc_rdma_setup_failures_total";
constexpr std::string_view kFailuresHelp = "Rails on which a connection couldn't be set up";

constexpr std::array<std::string_view, 6> kGidProblems = {"port_down",    "no_netdev",     "no_gid",
                                                          "only_roce_v1", "wrong_address", "unknown_link_layer"};

}  // namespace

RdmaMetrics::RdmaMetrics(Registry& registry)
    : queue_pairs(registry.gauge("srpc_rdma_queue_pairs", "Queue pairs, those that are being taken down included")),
      memory_regions(registry.gauge("srpc_rdma_memory_regions", "Memory regions of slots")),
      registered_bytes(registry.gauge("srpc_rdma_registered_bytes", "Memory registered for slots")),
      rails_up(registry.gauge("srpc_rdma_rails_up", "Rails whose port is up, as far as is known")),
      sends(registry.counter("srpc_rdma_sends_total", "SENDs posted")),
      send_bytes(registry.counter("srpc_rdma_send_bytes_total", "Bytes of streams in them")),
      receives(registry.counter("srpc_rdma_receives_total", "SENDs received")),
      receive_bytes(registry.counter("srpc_rdma_receive_bytes_total", "Bytes of streams in them")),
      reads(registry.counter("srpc_rdma_reads_total", "READs posted")),
      read_bytes(registry.counter("srpc_rdma_read_bytes_total", "Bytes of payload read from clients")),
      writes(registry.counter("srpc_rdma_writes_total", "WRITEs posted")),
      write_bytes(registry.counter("srpc_rdma_write_bytes_total", "Bytes of payload written to clients")),
      bare_credits(registry.counter("srpc_rdma_bare_credits_total", "SENDs of nothing but credits")),
      credit_stalls(registry.counter("srpc_rdma_credit_stalls_total",
                                     "Times a stream waited for credits of its peer or for a slot of its own")),
      one_sided_stalls(registry.counter("srpc_rdma_one_sided_stalls_total",
                                        "Times a stream waited for a payload to be posted before it")),
      events(registry.counter("srpc_rdma_events_total", "Completion events taken")),
      polls(registry.counter("srpc_rdma_polls_total", "Looks into completion queues that found something")),
      port_losses(registry.counter("srpc_rdma_port_losses_total", "Times a port went down")),
      abandoned(registry.counter("srpc_rdma_abandoned_total",
                                 "Queue pairs that couldn't be destroyed, whose memory is kept for good")) {
  for (size_t i = 1; i < kStatuses; ++i) {
    const std::string_view name = status_name(static_cast<CompletionStatus>(i));
    statuses_[i] = &registry.counter("srpc_rdma_failed_completions_total", "Completions with an error, by status",
                                     fmt::format("status=\"{}\"", name));
  }
  constexpr std::array<std::string_view, kErrors> kErrorNames = {"ENOMEM", "EINVAL", "other"};
  for (size_t verb = 0; verb < kVerbs; ++verb) {
    for (size_t error = 0; error < kErrors; ++error) {
      setup_failures_[verb][error] =
          &registry.counter(kFailures, kFailuresHelp,
                            fmt::format("reason=\"{}:{}\"", verb_name(static_cast<Verb>(verb)), kErrorNames[error]));
    }
  }
  for (size_t i = 0; i < kGidProblems.size(); ++i) {
    gid_problems_[i] = &registry.counter(kFailures, kFailuresHelp, fmt::format("reason=\"{}\"", kGidProblems[i]));
  }
}

size_t RdmaMetrics::kind_of(const VerbError& error) {
  if (error.error == ENOMEM) return 0;
  return error.error == EINVAL ? 1 : 2;
}

}  // namespace cairn::srpc::rdma
