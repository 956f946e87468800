#include "node/host_checks.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "base/log.h"

namespace cairn::node {
namespace {

constexpr rlim_t kFewFiles = 4096;

}  // namespace

void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < kFewFiles) {
    LOG(warn, "only {} files and connections can be open at a time; raise the limit (ulimit -n, LimitNOFILE=)",
        static_cast<uint64_t>(limit.rlim_max));
  }
}

Error listen_error(const Error& error, Service service, const Address& at) {
  const std::string_view name = service_name(service);
  std::string why;
  switch (error.code()) {
    case Errc::busy:
      why = fmt::format(
          "port {} is taken by another process: stop that one, or choose another port with --set "
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

Result<void> check_port_free(Service service, const Address& at) {
  if (at.port() == 0) return {};
  const Fd socket(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return listen_error(error_from_errno(errno, "socket"), service, at);
  // Connections that linger in TIME_WAIT don't count, as they won't for the listener.
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket.get(), at.raw(), at.raw_size()) == 0 && ::listen(socket.get(), 1) == 0) return {};
  Error error = error_from_errno(errno, "bind");
  if (errno == EADDRINUSE) error = Error(Errc::busy);
  if (errno == EACCES) error = Error(Errc::permission_denied);
  return listen_error(error, service, at);
}

}  // namespace cairn::node
