// The checks: each looks at one subject and says what it found, also when all is well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "srpc/rdma/gid_choice.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/machine.h"

namespace cairn::srpc::doctor {

// Devices, ports, the GID that SRPC takes, MTU, bonds. Gives the ports, for those that follow.
std::vector<rdma::PortFacts> check_rdma(const Machine& machine, Findings& findings);
// What keeps a lossless or congestion-controlled fabric so: ECN, PFC, DSCP, for each interface of an Ethernet port.
void check_fabric(const Machine& machine, const std::vector<rdma::PortFacts>& ports, Findings& findings);
// Locked memory, descriptors, huge pages, shared memory, io_uring. `rdma`: there are devices, which need locked memory.
void check_limits(const Machine& machine, bool rdma, Findings& findings);
// Cores, governor, limits of the control group.
void check_processor(const Machine& machine, Findings& findings);

// All of them.
Findings examine(const Machine& machine);

// The cores in a list such as "0-3,8"; nullopt for what isn't one.
std::optional<uint64_t> count_cores(const std::string& list);

}  // namespace cairn::srpc::doctor
