#include "node/ports.h"

#include <fmt/format.h>

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

Result<Address> listen_at(const NodeSettings& settings, Service service) {
  const auto index = static_cast<size_t>(service);
  const Row& row = kRows[index];
  const std::string& address =
      row.address == nullptr || (settings.*row.address).empty() ? settings.listen_default : settings.*row.address;
  const auto parsed = Address::parse(address, 0);
  if (!parsed) {
    return Error(Errc::invalid_argument,
                 fmt::format("listen.{}: '{}' is not an IP address; write for example 127.0.0.1, 0.0.0.0 or ::",
                             row.name, address));
  }
  Address at = *parsed;
  if (row.port != nullptr && (settings.*row.port).has_value()) {
    at.set_port(static_cast<uint16_t>(*(settings.*row.port)));
  } else if (settings.ports_base) {
    at.set_port(*settings.ports_base == 0 ? uint16_t{0} : static_cast<uint16_t>(*settings.ports_base + index));
  } else {
    at.set_port(row.well_known);
  }
  return at;
}

}  // namespace cairn::node
