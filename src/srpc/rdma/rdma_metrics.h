// What a poll group counts; docs/srpc.md has the names.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/metrics.h"
#include "srpc/rdma/gid_choice.h"
#include "srpc/rdma/verbs.h"

namespace cairn::srpc::rdma {

class RdmaMetrics {
 public:
  explicit RdmaMetrics(Registry& registry);

  Gauge& queue_pairs;
  Gauge& memory_regions;
  Gauge& registered_bytes;
  Gauge& rails_up;
  Counter& sends;
  Counter& send_bytes;
  Counter& receives;
  Counter& receive_bytes;
  Counter& reads;
  Counter& read_bytes;
  Counter& writes;
  Counter& write_bytes;
  Counter& bare_credits;
  Counter& credit_stalls;
  Counter& one_sided_stalls;
  Counter& events;
  Counter& polls;
  Counter& port_losses;
  Counter& abandoned;

  void slabs_changed(int64_t count, size_t bytes_each) {
    memory_regions.add(count);
    registered_bytes.add(count * static_cast<int64_t>(bytes_each));
  }
  void stalled(bool behind_payload) { (behind_payload ? one_sided_stalls : credit_stalls).add(); }
  void failed_completion(CompletionStatus status) { statuses_[static_cast<size_t>(status)]->add(); }
  // A connection that couldn't be set up.
  void setup_failed(const VerbError& error) { setup_failures_[static_cast<size_t>(error.verb)][kind_of(error)]->add(); }
  void setup_failed(GidProblem problem) { gid_problems_[static_cast<size_t>(problem)]->add(); }

 private:
  static constexpr size_t kErrors = 3;  // ENOMEM, EINVAL, others
  static constexpr size_t kStatuses = 22;
  static size_t kind_of(const VerbError& error);

  std::array<Counter*, kStatuses> statuses_ = {};
  std::array<std::array<Counter*, kErrors>, kVerbs> setup_failures_ = {};
  std::array<Counter*, 6> gid_problems_ = {};
};

}  // namespace cairn::srpc::rdma
