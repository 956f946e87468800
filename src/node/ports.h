// Which service listens where.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "node/settings.h"
#include "reactor/address.h"

namespace cairn::node {

// In the order in which ports.base counts; never reordered, scripts rely on it.
enum class Service : uint8_t { s3, admin, srpc, nvmf, iscsi, nfs, smb };
inline constexpr size_t kServices = 7;

// "s3", "admin", ...: the key in the ready file and behind "ports." and "listen.".
std::string_view service_name(Service service);

// From the settings ports.SERVICE, ports.base and listen.SERVICE, listen.default. Errors: invalid_argument when an
// address isn't a literal one. Port 0 means any free one.
Result<Address> listen_at(const NodeSettings& settings, Service service);

}  // namespace cairn::node
