#include "node/held_port.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>

namespace cairn::node {
namespace {

Error bind_error(Service service, const Address& at) {
  Error error = error_from_errno(errno, "bind");
  if (errno == EADDRINUSE) error = Error(Errc::busy);
  if (errno == EACCES) error = Error(Errc::permission_denied);
  return listen_error(error, service, at);
}

void set_option(const Fd& socket, int option) {
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, option, &yes, sizeof yes);
}

Result<void> probe(Service service, const Address& at) {
  const Fd socket(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return bind_error(service, at);
  // Connections that linger in TIME_WAIT don't count, as they won't for the listeners.
  set_option(socket, SO_REUSEADDR);
  if (::bind(socket.get(), at.raw(), at.raw_size()) != 0 || ::listen(socket.get(), 1) != 0) {
    return bind_error(service, at);
  }
  return {};
}

}  // namespace

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

Result<HeldPort> HeldPort::take(Service service, Address at) {
  if (at.port() != 0) TRY(probe(service, at));
  HeldPort held;
  held.socket_ = Fd(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!held.socket_) return bind_error(service, at);
  set_option(held.socket_, SO_REUSEADDR);
  set_option(held.socket_, SO_REUSEPORT);
  if (::bind(held.socket_.get(), at.raw(), at.raw_size()) != 0) return bind_error(service, at);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(held.socket_.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return bind_error(service, at);
  }
  held.address_ = Address::from(reinterpret_cast<sockaddr*>(&bound), size);
  return held;
}

}  // namespace cairn::node
