#include "srpc/verbs/port_facts.h"

#include <fmt/format.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

namespace cairn::srpc::rdma {
namespace {

static_assert(static_cast<int>(PortState::down) == IBV_PORT_DOWN);
static_assert(static_cast<int>(PortState::active) == IBV_PORT_ACTIVE);
static_assert(static_cast<int>(PortState::active_defer) == IBV_PORT_ACTIVE_DEFER);
static_assert(static_cast<int>(LinkLayer::ethernet) == IBV_LINK_LAYER_ETHERNET);

uint32_t bytes_of(ibv_mtu mtu) { return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128U << mtu : 0; }

// The specification's numbers (IBA 1.5, PortPhysicalState), as `rdma link` names them.
std::string physical_state_name(uint8_t state) {
  constexpr const char* kNames[] = {"",         "Sleep",  "Polling",           "Disabled",
                                    "Training", "LinkUp", "LinkErrorRecovery", "PhyTest"};
  return state < std::size(kNames) ? kNames[state] : fmt::format("state {}", state);
}

GidType type_of(uint32_t type) {
  switch (type) {
    case IBV_GID_TYPE_IB:
      return GidType::infiniband;
    case IBV_GID_TYPE_ROCE_V1:
      return GidType::roce_v1;
    case IBV_GID_TYPE_ROCE_V2:
      return GidType::roce_v2;
    default:
      return GidType::unknown;
  }
}

std::string interface_name(uint32_t index) {
  char name[IF_NAMESIZE] = {};
  return index != 0 && ::if_indextoname(index, name) != nullptr ? name : "";
}

// The interface of a device: below the device that both belong to, or, of a software device, its parent.
std::string interface_of(const std::string& device) {
  const std::filesystem::path folder = "/sys/class/infiniband/" + device;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "device/net", failed)) {
    return entry.path().filename().string();
  }
  std::string name;
  std::ifstream(folder / "parent") >> name;
  return ::if_nametoindex(name.c_str()) != 0 ? name : "";
}

uint32_t mtu_of(const std::string& interface) {
  uint32_t mtu = 0;
  if (!interface.empty()) std::ifstream("/sys/class/net/" + interface + "/mtu") >> mtu;
  return mtu;
}

// In one call for the whole table, which has a thousand entries on some devices. Where that has more than the call can
// carry (its length has 16 bits) or the kernel doesn't know it, entry by entry.
std::vector<ibv_gid_entry> gid_entries(ibv_context& context, uint8_t port, int table_size) {
  constexpr size_t kMost = UINT16_MAX / sizeof(ibv_gid_entry);
  std::vector<ibv_gid_entry> entries(kMost);
  const ssize_t count = ibv_query_gid_table(&context, entries.data(), entries.size(), 0);
  entries.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  for (int i = 0; count < 0 && i < table_size; ++i) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(&context, port, static_cast<uint32_t>(i), &entry, 0) == 0) entries.push_back(entry);
  }
  return entries;
}

std::vector<Gid> gids_of(ibv_context& context, uint8_t port, int table_size) {
  std::vector<Gid> gids;
  for (const ibv_gid_entry& entry : gid_entries(context, port, table_size)) {
    if (entry.port_num != port) continue;
    gids.push_back({.index = entry.gid_index,
                    .bytes = std::to_array(entry.gid.raw),
                    .type = type_of(entry.gid_type),
                    .netdev = interface_name(entry.ndev_ifindex)});
  }
  return gids;
}

}  // namespace

PortFacts port_facts(ibv_context& context, uint8_t port, const ibv_port_attr& attributes) {
  PortFacts facts{.device = ibv_get_device_name(context.device), .port = port};
  facts.iwarp = context.device->transport_type == IBV_TRANSPORT_IWARP;
  facts.state = static_cast<PortState>(attributes.state);
  facts.physical_state = physical_state_name(attributes.phys_state);
  facts.link_layer = static_cast<LinkLayer>(std::min<uint8_t>(attributes.link_layer, IBV_LINK_LAYER_ETHERNET));
  facts.active_mtu_bytes = bytes_of(attributes.active_mtu);
  facts.max_mtu_bytes = bytes_of(attributes.max_mtu);
  facts.gids = gids_of(context, port, attributes.gid_tbl_len);
  facts.netdev = interface_of(facts.device);
  // Of several ports of one device each GID names its own.
  const auto named = std::ranges::find_if(facts.gids, [](const Gid& gid) { return !gid.netdev.empty(); });
  if (named != facts.gids.end()) facts.netdev = named->netdev;
  facts.netdev_mtu_bytes = mtu_of(facts.netdev);
  return facts;
}

}  // namespace cairn::srpc::rdma
