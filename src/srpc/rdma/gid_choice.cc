#include "srpc/rdma/gid_choice.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace cairn::srpc::rdma {
namespace {

constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

// What RoCEv2 adds to an RDMA payload in the worst case, as the kernel reckons: IPv6 40, UDP 8, BTH 12, the extended
// headers of XRC 4 and of atomics 28, ICRC 4.
constexpr uint32_t kRoceOverheadBytes = 40 + 8 + 12 + 4 + 28 + 4;
constexpr uint32_t kLargestMtuBytes = 4096;
constexpr uint32_t kSmallestMtuBytes = 256;

// nullopt: any.
std::optional<Gid::Bytes> gid_of(const Address& address) {
  if (address.family() == AF_INET) {
    const in_addr_t host = ntohl(reinterpret_cast<const sockaddr_in*>(address.raw())->sin_addr.s_addr);
    if (host == INADDR_ANY) return std::nullopt;
    Gid::Bytes bytes{};
    bytes[10] = bytes[11] = 0xff;
    for (size_t i = 0; i < 4; ++i) bytes[12 + i] = static_cast<uint8_t>(host >> (24 - 8 * i));
    return bytes;
  }
  if (address.family() == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6*>(address.raw())->sin6_addr;
    if (IN6_IS_ADDR_UNSPECIFIED(&v6)) return std::nullopt;
    return std::to_array(v6.s6_addr);
  }
  return std::nullopt;
}

// Smaller is better; the table's order decides among equals.
enum class Rank : uint8_t { ipv4, ipv6, link_local, never };

Rank rank_of(const Gid& gid) {
  if (gid.type != GidType::roce_v2 || gid.is_zero()) return Rank::never;
  if (gid.is_ipv4()) return Rank::ipv4;
  return gid.is_link_local() ? Rank::link_local : Rank::ipv6;
}

std::string_view rank_text(Rank rank) {
  switch (rank) {
    case Rank::ipv4:
      return "RoCEv2 with the IPv4 address";
    case Rank::ipv6:
      return "RoCEv2 with the IPv6 address";
    case Rank::link_local:
      return "RoCEv2 with the link-local address";
    case Rank::never:
      break;
  }
  return "not usable";
}

std::unexpected<NoGid> refuse(const PortFacts& facts, GidProblem problem, std::string_view text, std::string fix) {
  return std::unexpected(NoGid{problem, fmt::format("{}: {}", describe(facts), text), std::move(fix)});
}

std::string netdev_or(const PortFacts& facts, std::string_view otherwise) {
  return facts.netdev.empty() ? std::string(otherwise) : facts.netdev;
}

// What an Ethernet port's frames carry. The device's own figure is believed, unless its interface was shrunk since.
uint32_t roce_path_mtu(const PortFacts& facts) {
  if (facts.netdev_mtu_bytes == 0) return facts.active_mtu_bytes;
  const uint32_t fits = roce_mtu_for(facts.netdev_mtu_bytes);
  return facts.active_mtu_bytes == 0 ? fits : std::min(fits, facts.active_mtu_bytes);
}

std::string mtu_note(const PortFacts& facts, uint32_t path_mtu_bytes) {
  const uint32_t possible = facts.max_mtu_bytes == 0 ? kLargestMtuBytes : facts.max_mtu_bytes;
  if (facts.netdev_mtu_bytes == 0 || path_mtu_bytes >= possible) return "";
  return fmt::format("MTU {} of {} possible: 'ip link set {} mtu {}', if the switches carry it", path_mtu_bytes,
                     possible, netdev_or(facts, "INTERFACE"), std::max(possible + kRoceOverheadBytes, 4200U));
}

std::expected<GidChoice, NoGid> choose_roce(const PortFacts& facts, const Address& wanted) {
  if (facts.netdev.empty() && std::ranges::all_of(facts.gids, [](const Gid& gid) { return gid.netdev.empty(); })) {
    return refuse(
        facts, GidProblem::no_netdev, "its network interface isn't in this network namespace",
        fmt::format("run in the namespace that has it (container: host network), or move it: 'rdma dev set {} "
                    "netns NAME' and 'ip link set INTERFACE netns NAME'",
                    facts.device));
  }
  const auto address = gid_of(wanted);
  const Gid* best = nullptr;
  for (const Gid& gid : facts.gids) {
    if (rank_of(gid) == Rank::never || (address && gid.bytes != *address)) continue;
    if (best == nullptr || rank_of(gid) < rank_of(*best)) best = &gid;
  }
  const std::string netdev = netdev_or(facts, "INTERFACE");
  if (best == nullptr) {
    const bool any_v2 = std::ranges::any_of(facts.gids, [](const Gid& gid) { return rank_of(gid) != Rank::never; });
    const bool any_v1 = std::ranges::any_of(facts.gids, [](const Gid& gid) { return gid.type == GidType::roce_v1; });
    if (any_v2) {
      return refuse(facts, GidProblem::wrong_address,
                    fmt::format("no RoCEv2 GID has the address {}", gid_text(*address)),
                    fmt::format("listen on an address of {}, or give it this one: 'ip address add {}/PREFIX dev {}'",
                                netdev, gid_text(*address), netdev));
    }
    if (any_v1) {
      return refuse(
          facts, GidProblem::only_roce_v1, "it has RoCEv1 GIDs only",
          fmt::format("turn RoCEv2 on: 'cma_roce_mode -d {} -p {} -m 2', or a setting of the device's driver or "
                      "firmware",
                      facts.device, facts.port));
    }
    return refuse(facts, GidProblem::no_gid, "it has no GID",
                  fmt::format("give its interface an address: 'ip address add ADDRESS/PREFIX dev {}'", netdev));
  }
  const Rank rank = rank_of(*best);
  GidChoice choice{.index = best->index,
                   .type = best->type,
                   .gid = best->bytes,
                   .path_mtu_bytes = roce_path_mtu(facts),
                   .why = fmt::format("{} {}", rank_text(rank), gid_text(best->bytes))};
  choice.note =
      rank == Rank::link_local
          ? fmt::format("a link-local address reaches the same link only: 'ip address add ADDRESS/PREFIX dev {}'",
                        netdev)
          : mtu_note(facts, choice.path_mtu_bytes);
  return choice;
}

}  // namespace

bool Gid::is_ipv4() const { return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes.begin()); }
bool Gid::is_link_local() const { return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80; }

std::expected<GidChoice, NoGid> choose_gid(const PortFacts& facts, const Address& wanted) {
  if (facts.state != PortState::active && facts.state != PortState::active_defer) {
    const bool fabric = facts.link_layer == LinkLayer::infiniband;
    return refuse(facts, GidProblem::port_down, fmt::format("the port is {}", port_state_name(facts.state)),
                  fabric ? std::string("check the cable, and that a subnet manager (opensm) runs in the fabric")
                         : fmt::format("check the cable, then 'ip link set {} up'", netdev_or(facts, "INTERFACE")));
  }
  if (facts.iwarp) {
    GidChoice choice{.path_mtu_bytes = facts.active_mtu_bytes, .why = "iWARP: the address of its interface"};
    if (!facts.gids.empty()) choice.gid = facts.gids.front().bytes;
    return choice;
  }
  switch (facts.link_layer) {
    case LinkLayer::ethernet:
      return choose_roce(facts, wanted);
    case LinkLayer::infiniband:
      if (facts.gids.empty()) {
        return refuse(facts, GidProblem::no_gid, "it has no GID",
                      "check that a subnet manager (opensm) runs in the fabric");
      }
      return GidChoice{.index = facts.gids.front().index,
                       .type = GidType::infiniband,
                       .gid = facts.gids.front().bytes,
                       .path_mtu_bytes = facts.active_mtu_bytes,
                       .why = "InfiniBand: the port's first GID"};
    case LinkLayer::unspecified:
      break;
  }
  return refuse(facts, GidProblem::unknown_link_layer, "it is neither Ethernet nor InfiniBand",
                "use another device: SRPC doesn't know this kind");
}

uint32_t roce_mtu_for(uint32_t netdev_mtu_bytes) {
  for (uint32_t mtu = kLargestMtuBytes; mtu >= kSmallestMtuBytes; mtu /= 2) {
    if (mtu + kRoceOverheadBytes <= netdev_mtu_bytes) return mtu;
  }
  return 0;
}

std::string gid_text(const Gid::Bytes& bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  if (Gid{.bytes = bytes}.is_ipv4()) {
    ::inet_ntop(AF_INET, bytes.data() + kMappedPrefix.size(), text, sizeof(text));
  } else {
    ::inet_ntop(AF_INET6, bytes.data(), text, sizeof(text));
  }
  return text;
}

std::string_view gid_type_name(GidType type) {
  switch (type) {
    case GidType::infiniband:
      return "InfiniBand";
    case GidType::roce_v1:
      return "RoCEv1";
    case GidType::roce_v2:
      return "RoCEv2";
    case GidType::unknown:
      break;
  }
  return "of unknown type";
}

std::string_view port_state_name(PortState state) {
  switch (state) {
    case PortState::no_port:
      return "not there";
    case PortState::down:
      return "down";
    case PortState::init:
      return "initializing";
    case PortState::armed:
      return "armed";
    case PortState::active:
      return "active";
    case PortState::active_defer:
      return "active (deferred)";
  }
  return "in an unknown state";
}

std::string describe(const PortFacts& facts) {
  // Enough to see what is there, not a table of 256 entries in a line of the log.
  constexpr size_t kShown = 4;
  std::string out = fmt::format("{} port {} ({}", facts.device, facts.port, port_state_name(facts.state));
  if (!facts.physical_state.empty()) out += fmt::format(", {}", facts.physical_state);
  if (facts.iwarp) {
    out += "; iWARP";
  } else if (facts.link_layer == LinkLayer::ethernet) {
    out += "; Ethernet";
  } else if (facts.link_layer == LinkLayer::infiniband) {
    out += "; InfiniBand";
  }
  if (!facts.netdev.empty()) out += fmt::format(", {}", facts.netdev);
  for (size_t i = 0; i < std::min(kShown, facts.gids.size()); ++i) {
    const Gid& gid = facts.gids[i];
    out += fmt::format("{} GID {} {} {}", i == 0 ? ";" : ",", gid.index, gid_type_name(gid.type), gid_text(gid.bytes));
  }
  if (facts.gids.size() > kShown) out += fmt::format(", {} more", facts.gids.size() - kShown);
  return out + ")";
}

}  // namespace cairn::srpc::rdma
