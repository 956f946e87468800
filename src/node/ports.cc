#include "node/ports.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <array>

namespace cairn::node {
namespace {

struct Row {
  std::string_view name;
  uint16_t well_known;
  std::optional<uint64_t> NodeSettings::* port;  // null: not served yet
  std::string NodeSettings::* address;
};

constexpr std::array<Row, kServices> kRows = {{
    {"s3", 9000, &NodeSettings::ports_s3, &NodeSettings::listen_s3},
    {"admin", 7070, &NodeSettings::ports_admin, &NodeSettings::listen_admin},
    {"srpc", 7400, &NodeSettings::ports_srpc, &NodeSettings::listen_srpc},
    {"nvmf", 4420, nullptr, nullptr},
    {"iscsi", 3260, nullptr, nullptr},
    {"nfs", 2049, nullptr, nullptr},
    {"smb", 445, nullptr, nullptr},
}};

}  // namespace

std::string_view service_name(Service service) { return kRows[static_cast<size_t>(service)].name; }

std::string format_endpoint(std::string_view address, uint16_t port) {
  return address.find(':') == std::string_view::npos ? fmt::format("{}:{}", address, port)
                                                     : fmt::format("[{}]:{}", address, port);
}

std::string ListenAt::to_string() const { return format_endpoint(address, port); }

Result<ListenAt> listen_at(const NodeSettings& settings, Service service) {
  const auto index = static_cast<size_t>(service);
  const Row& row = kRows[index];
  ListenAt at;
  at.address =
      row.address == nullptr || (settings.*row.address).empty() ? settings.listen_default : settings.*row.address;
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, at.address.c_str(), &v4) == 1) {
    at.loopback = (ntohl(v4.s_addr) >> 24) == 127;
  } else if (::inet_pton(AF_INET6, at.address.c_str(), &v6) == 1) {
    at.loopback = IN6_IS_ADDR_LOOPBACK(&v6);
  } else {
    return Error(Errc::invalid_argument,
                 fmt::format("listen.{}: '{}' is not an IP address; write for example 127.0.0.1, 0.0.0.0 or ::",
                             row.name, at.address));
  }
  if (row.port != nullptr && (settings.*row.port).has_value()) {
    at.port = static_cast<uint16_t>(*(settings.*row.port));
  } else if (settings.ports_base) {
    at.port = *settings.ports_base == 0 ? uint16_t{0} : static_cast<uint16_t>(*settings.ports_base + index);
  } else {
    at.port = row.well_known;
  }
  return at;
}

}  // namespace cairn::node
