// The ports of this machine's RDMA devices, by libibverbs and what /sys says beside it.
#pragma once

#include <vector>

#include "base/status.h"
#include "srpc/rdma/gid_choice.h"

namespace cairn::srpc::doctor {

// Errors: not_found (the kernel knows no device), permission_denied and others (it does, and they can't be opened).
Result<std::vector<rdma::PortFacts>> verbs_ports();

}  // namespace cairn::srpc::doctor
