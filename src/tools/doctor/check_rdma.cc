#include <fmt/format.h>

#include <algorithm>

#include "tools/doctor/checks.h"

namespace cairn::srpc::doctor {
namespace {

constexpr std::string_view kSubject = "rdma";

void check_no_ports(const Machine& machine, const Error& error, Findings& findings) {
  const auto devices = machine.list("/sys/class/infiniband");
  if (devices.empty() && error.code() == Errc::not_found) {
    findings.add(Level::note, kSubject, "no RDMA device: SRPC uses shared memory and TCP",
                 "if there is hardware, load its driver (mlx5_ib, irdma, bnxt_re); to try without: 'rdma link add rxe0 "
                 "type rxe netdev INTERFACE'");
    return;
  }
  const bool no_files = machine.list("/dev/infiniband").empty();
  findings.add(Level::warning, kSubject,
               fmt::format("{} can't be used by this process ({}): SRPC uses TCP instead",
                           devices.empty() ? "RDMA" : fmt::format("{}", fmt::join(devices, ", ")),
                           error.message().empty() ? errc_name(error.code()) : error.message()),
               no_files ? "there is no /dev/infiniband: 'modprobe ib_uverbs rdma_ucm', in a container also "
                          "'--device /dev/infiniband'"
                        : "give this user read and write access to /dev/infiniband/uverbs*, and install the device's "
                          "library (ibverbs-providers)");
}

// A port below a bond works only where the driver makes one port of both (RoCE LAG), which three bonding modes allow.
void check_bond(const Machine& machine, const rdma::PortFacts& facts, Findings& findings) {
  const std::string netdev = facts.netdev;
  if (netdev.empty()) return;
  const bool is_bond = machine.exists(fmt::format("/sys/class/net/{}/bonding", netdev));
  const auto bond =
      is_bond ? std::optional(netdev) : machine.link_name(fmt::format("/sys/class/net/{}/master", netdev));
  if (!bond) return;
  const auto mode = machine.read(fmt::format("/sys/class/net/{}/bonding/mode", *bond));
  if (!mode) return;  // a bridge, or the like
  const std::string name = mode->substr(0, mode->find(' '));
  const bool fits = name == "active-backup" || name == "balance-xor" || name == "802.3ad";
  findings.add(
      fits ? Level::ok : Level::warning, kSubject,
      fmt::format("{} port {}: {} belongs to {}, bonding mode {}", facts.device, facts.port, netdev, *bond, name),
      fits ? ""
           : "RDMA needs mode active-backup, balance-xor or 802.3ad; or take its ports as two rails, without a bond");
}

void check_port(const Machine& machine, const rdma::PortFacts& facts, Findings& findings) {
  const auto choice = rdma::choose_gid(facts);
  if (!choice) {
    findings.add(Level::warning, kSubject, choice.error().text + ": SRPC uses TCP instead", choice.error().fix);
    return;
  }
  std::string text = fmt::format("{}: SRPC takes GID {}, {}; MTU {}", rdma::describe(facts), choice->index, choice->why,
                                 choice->path_mtu_bytes);
  if (facts.max_mtu_bytes != 0) text += fmt::format(" of at most {}", facts.max_mtu_bytes);
  if (facts.netdev_mtu_bytes != 0) text += fmt::format(", interface {}", facts.netdev_mtu_bytes);
  findings.add(choice->note.empty() ? Level::ok : Level::note, kSubject, std::move(text), choice->note);
  check_bond(machine, facts, findings);
}

}  // namespace

std::vector<rdma::PortFacts> check_rdma(const Machine& machine, Findings& findings) {
  auto ports = machine.rdma_ports();
  if (!ports) {
    check_no_ports(machine, ports.error(), findings);
    return {};
  }
  for (const rdma::PortFacts& facts : *ports) check_port(machine, facts, findings);
  return *std::move(ports);
}

}  // namespace cairn::srpc::doctor
