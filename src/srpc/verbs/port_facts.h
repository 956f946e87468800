// What there is to know of a port of an RDMA device, from libibverbs and from /sys beside it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "srpc/rdma/gid_choice.h"

namespace cairn::srpc::rdma {

// `attributes`: what ibv_query_port says.
PortFacts port_facts(ibv_context& context, uint8_t port, const ibv_port_attr& attributes);

}  // namespace cairn::srpc::rdma
