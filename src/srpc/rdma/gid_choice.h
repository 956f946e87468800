// Which address of an RDMA port SRPC uses, or what stands in the way of using any. Facts in, a decision out: nothing
// here asks a device, so the transport and srpc-doctor decide alike, and every case has a test.
//
//   auto choice = choose_gid(facts, wanted);
//   if (!choice) fall_back_to_tcp(choice.error());   // one line: device, port, state, GIDs, and the fix
//   use(choice->index, choice->path_mtu);
//
// On Ethernet, in this order:
//   1. RoCEv2 with an IPv4 address        routed, and the address that TCP uses, too
//   2. RoCEv2 with a global IPv6 address
//   3. RoCEv2 with a link-local address   reaches the same link only: taken, with a note
// RoCEv1 is never taken: it isn't routed, congestion control doesn't know it, and a peer with v2 doesn't understand it.
// On InfiniBand it is the port's first GID. iWARP has no GIDs to choose from.
//
// A port whose network device isn't in this network namespace can't be used: rdma_cm resolves addresses by it.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "reactor/address.h"

namespace cairn::srpc::rdma {

// As in enum ibv_port_state, whose values these are.
enum class PortState : uint8_t { no_port = 0, down = 1, init = 2, armed = 3, active = 4, active_defer = 5 };
enum class LinkLayer : uint8_t { unspecified = 0, infiniband = 1, ethernet = 2 };
enum class GidType : uint8_t { infiniband, roce_v1, roce_v2, unknown };

struct Gid {
  using Bytes = std::array<uint8_t, 16>;

  uint32_t index = 0;
  Bytes bytes = {};
  GidType type = GidType::unknown;
  std::string netdev = "";  // its interface; empty: none that this network namespace can see

  bool is_zero() const { return bytes == Bytes{}; }
  bool is_ipv4() const;        // ::ffff:a.b.c.d
  bool is_link_local() const;  // fe80::/10
  bool operator==(const Gid&) const = default;
};

struct PortFacts {
  std::string device;  // "mlx5_0"
  uint8_t port = 1;    // as verbs count: from 1
  PortState state = PortState::no_port;
  std::string physical_state = "";  // "LinkUp", "Disabled", ...; empty: unknown
  LinkLayer link_layer = LinkLayer::unspecified;
  bool iwarp = false;
  uint32_t active_mtu_bytes = 0;  // of RDMA: 256 to 4096, without headers
  uint32_t max_mtu_bytes = 0;
  std::string netdev = "";        // of the port; empty: none in this network namespace
  uint32_t netdev_mtu_bytes = 0;  // 0: unknown
  std::vector<Gid> gids = {};     // without the empty entries of the table
};

struct GidChoice {
  uint32_t index = 0;
  GidType type = GidType::unknown;
  Gid::Bytes gid = {};
  uint32_t path_mtu_bytes = 0;
  std::string why = "";   // for people: "RoCEv2 with the IPv4 address 10.0.0.7"
  std::string note = "";  // what is worth improving; empty: nothing
};

enum class GidProblem : uint8_t {
  port_down,  // or not active yet
  no_netdev,  // in another network namespace, hidden by a bond or a container
  no_gid,     // the table is empty: the interface has no address
  only_roce_v1,
  wrong_address,  // no usable GID carries the wanted address
  unknown_link_layer,
};

// For programs the kind, for people one line with device, port, state and GIDs in `text`, and what to do in `fix`.
struct NoGid {
  GidProblem problem;
  std::string text;
  std::string fix;

  std::string to_string() const { return text + "; " + fix; }
};

// `wanted`: the local address that must be meant (that on which a server listens, from which a client connects);
// invalid, or the wildcard: any.
std::expected<GidChoice, NoGid> choose_gid(const PortFacts& facts, const Address& wanted = {});

// The largest RDMA MTU that fits a RoCE interface's MTU with all headers; 0 when none does. 1500 carries 1024, and 4096
// needs 4192.
uint32_t roce_mtu_for(uint32_t netdev_mtu_bytes);

// "10.0.0.7" for an IPv4 one, else as IPv6.
std::string gid_text(const Gid::Bytes& bytes);
std::string_view gid_type_name(GidType type);       // "RoCEv2"
std::string_view port_state_name(PortState state);  // "down"
// "mlx5_0 port 1 (down, Disabled; Ethernet, eth2; GID 0 RoCEv1 fe80::1, ...)"
std::string describe(const PortFacts& facts);

}  // namespace cairn::srpc::rdma
