// What a program says about RDMA: whose calls to use, and what else it may want to.
#pragma once

#include <vector>

#include "srpc/rdma/device.h"
#include "srpc/rdma/queue_options.h"
#include "srpc/rdma/upgrades.h"

namespace cairn::srpc::rdma {

struct RdmaOptions {
  // Outlives the host: verbs/system_verbs.h, which needs libibverbs, as SRPC itself doesn't.
  Verbs* verbs = nullptr;
  // In the order of preference; none: every port of every device.
  std::vector<RailOptions> rails = {};
  Roles roles = {};
  QueueOptions queues = {};
  UpgradeOptions upgrades = {};
};

}  // namespace cairn::srpc::rdma
