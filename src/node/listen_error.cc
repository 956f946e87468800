#include "node/listen_error.h"

#include <fmt/format.h>

namespace cairn::node {

Error listen_error(const Error& error, Service service, const Address& at) {
  const std::string_view name = service_name(service);
  std::string why;
  switch (error.code()) {
    case Errc::busy:
      why = fmt::format(
          "port {} is in use by another process: stop that one, or choose another port with --set "
          "ports.{}=N (or ports.base=N for all)",
          at.port(), name);
      break;
    case Errc::permission_denied:
      why = fmt::format("ports below 1024 are for root: choose another with --set ports.{}=N", name);
      break;
    default:
      why = fmt::format("{} (is it an address of this machine? --set listen.{}=ADDRESS)", error.message(), name);
  }
  return Error(error.code(), fmt::format("{} can't listen on {}: {}", name, at.to_string(), why));
}

}  // namespace cairn::node
