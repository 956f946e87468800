// Which service listens where.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "node/settings.h"

namespace cairn::node {

// In the order in which ports.base counts; never reordered, scripts rely on it.
enum class Service : uint8_t { s3, admin, srpc, nvmf, iscsi, nfs, smb };
inline constexpr size_t kServices = 7;

// "s3", "admin", ...: the key in the ready file and behind "ports." and "listen.".
std::string_view service_name(Service service);

struct ListenAt {
  std::string address;  // a literal IPv4 or IPv6 address
  uint16_t port = 0;    // 0: any free one
  bool loopback = false;

  // "127.0.0.1:9000", "[::1]:9000".
  std::string to_string() const;
};

// From the settings ports.SERVICE, ports.base and listen.SERVICE, listen.default. Errors: invalid_argument when an
// address isn't a literal one.
Result<ListenAt> listen_at(const NodeSettings& settings, Service service);
std::string format_endpoint(std::string_view address, uint16_t port);

}  // namespace cairn::node
