// The devices of this machine, by libibverbs.
#pragma once

#include <memory>

#include "srpc/rdma/verbs.h"

namespace cairn::srpc::rdma {

// One for each process is enough. Where the kernel has no RDMA it has no devices.
std::unique_ptr<Verbs> system_verbs();

}  // namespace cairn::srpc::rdma
