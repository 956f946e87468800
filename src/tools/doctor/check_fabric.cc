#include <fmt/format.h>

#include <set>

#include "tools/doctor/checks.h"

namespace cairn::srpc::doctor {
namespace {

constexpr std::string_view kSubject = "fabric";
constexpr int kPriorities = 8;

// Priorities as "3" or "0-7" would be read by people: "3, 4".
std::string joined(const std::vector<int>& priorities) {
  return priorities.size() == kPriorities ? "all" : fmt::format("{}", fmt::join(priorities, ", "));
}

// Which priorities a folder of mlx5's /sys/class/net/X/ecn turns on; nullopt: the driver has no such folder.
std::optional<std::vector<int>> ecn_priorities(const Machine& machine, const std::string& folder) {
  if (machine.list(folder).empty()) return std::nullopt;
  std::vector<int> on;
  for (int priority = 0; priority < kPriorities; ++priority) {
    if (machine.read_number(fmt::format("{}/{}", folder, priority)).value_or(0) != 0) on.push_back(priority);
  }
  return on;
}

void check_ecn(const Machine& machine, const std::string& netdev, Findings& findings) {
  const auto react = ecn_priorities(machine, fmt::format("/sys/class/net/{}/ecn/roce_rp/enable", netdev));
  const auto notify = ecn_priorities(machine, fmt::format("/sys/class/net/{}/ecn/roce_np/enable", netdev));
  if (!react || !notify) {
    findings.add(Level::unknown, kSubject,
                 fmt::format("{}: whether RoCE reacts to ECN: its driver doesn't say (mlx5 does)", netdev),
                 "look with the vendor's tool; congestion control needs it, and switches that mark");
    return;
  }
  if (react->empty() || notify->empty()) {
    findings.add(Level::warning, kSubject,
                 fmt::format("{}: RoCE doesn't react to ECN: congestion becomes loss", netdev),
                 fmt::format("echo 1 > /sys/class/net/{0}/ecn/roce_rp/enable/3, and the same for roce_np", netdev));
    return;
  }
  findings.add(Level::ok, kSubject, fmt::format("{}: RoCE reacts to ECN, priorities {}", netdev, joined(*react)));
}

// "prio-pfc 0:off 1:off ... 7:on", as dcb(8) prints it; nullopt: not that.
std::optional<std::vector<int>> pfc_priorities(const std::string& text) {
  if (!text.contains("prio-pfc")) return std::nullopt;
  std::vector<int> on;
  for (int priority = 0; priority < kPriorities; ++priority) {
    if (text.contains(fmt::format(" {}:on", priority))) on.push_back(priority);
  }
  return on;
}

void check_pfc(const Machine& machine, const std::string& netdev, Findings& findings) {
  const auto text = machine.run({"dcb", "pfc", "show", "dev", netdev, "prio-pfc"});
  const auto on = text ? pfc_priorities(*text) : std::nullopt;
  if (!on) {
    findings.add(Level::unknown, kSubject, fmt::format("{}: PFC: neither dcb(8) nor its driver says", netdev),
                 "look with the vendor's tool (mlnx_qos); RoCEv2 without PFC relies on ECN alone");
  } else if (on->empty()) {
    findings.add(
        Level::note, kSubject, fmt::format("{}: PFC is off: RoCEv2 relies on ECN alone", netdev),
        fmt::format("for a lossless class: 'dcb pfc set dev {} prio-pfc 3:on', and the same on the switches", netdev));
  } else if (on->size() > 2) {
    findings.add(Level::warning, kSubject,
                 fmt::format("{}: PFC is on for priorities {}: a pause stops everything", netdev, joined(*on)),
                 fmt::format("leave it on for RoCE's class only: 'dcb pfc set dev {} prio-pfc all:off 3:on'", netdev));
  } else {
    findings.add(Level::ok, kSubject, fmt::format("{}: PFC is on for priorities {}", netdev, joined(*on)));
  }
}

void check_dscp(const Machine& machine, const std::string& netdev, Findings& findings) {
  const auto text = machine.run({"dcb", "app", "show", "dev", netdev, "dscp-prio"});
  if (!text || !text->contains("dscp-prio")) {
    findings.add(Level::unknown, kSubject,
                 fmt::format("{}: how DSCP maps to priorities: neither dcb(8) nor its driver says", netdev));
    return;
  }
  std::string line = *text;
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  findings.add(Level::ok, kSubject, fmt::format("{}: {}", netdev, line));
}

}  // namespace

void check_fabric(const Machine& machine, const std::vector<rdma::PortFacts>& ports, Findings& findings) {
  std::set<std::string> netdevs;
  for (const rdma::PortFacts& facts : ports) {
    if (facts.link_layer == rdma::LinkLayer::ethernet && !facts.netdev.empty()) netdevs.insert(facts.netdev);
  }
  for (const std::string& netdev : netdevs) {
    check_ecn(machine, netdev, findings);
    check_pfc(machine, netdev, findings);
    check_dscp(machine, netdev, findings);
  }
  if (const auto ecn = machine.read_number("/proc/sys/net/ipv4/tcp_ecn")) {
    constexpr const char* kMeanings[] = {"off", "asked for and accepted", "accepted when a peer asks"};
    findings.add(Level::ok, kSubject,
                 fmt::format("TCP and ECN: {}", *ecn < std::size(kMeanings) ? kMeanings[*ecn] : "on"));
  }
}

}  // namespace cairn::srpc::doctor
