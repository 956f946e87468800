// Metrics of the process as a whole, looked up when somebody asks.
#pragma once

#include <cstdint>
#include <string>

#include "base/metrics.h"

namespace cairn::node {

class ProcessMetrics {
 public:
  // `labels` of node_info.
  explicit ProcessMetrics(const std::string& labels);

  struct Values {
    uint64_t uptime_seconds = 0;
    bool ready = false;
    uint64_t store_memory_bytes = 0;
    uint64_t store_disk_bytes = 0;
  };
  // Adds what the kernel says about this process.
  const Registry& update(const Values& values);

 private:
  Registry registry_;
  Gauge& uptime_;
  Gauge& ready_;
  Gauge& resident_;
  Gauge& open_files_;
  Gauge& store_memory_;
  Gauge& store_disk_;
};

}  // namespace cairn::node
