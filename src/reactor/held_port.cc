#include "reactor/held_port.h"

#include <sys/socket.h>

#include <cerrno>

namespace cairn {
namespace {

Error bind_error() {
  if (errno == EADDRINUSE) return Error(Errc::busy, "in use by another process");
  if (errno == EACCES) return Error(Errc::permission_denied, "ports below 1024 are for root");
  return error_from_errno(errno, "bind");
}

void set_option(const Fd& socket, int option) {
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, option, &yes, sizeof yes);
}

Result<void> probe(const Address& at) {
  const Fd socket(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return bind_error();
  // Connections that linger in TIME_WAIT don't count, as they won't for the listeners.
  set_option(socket, SO_REUSEADDR);
  if (::bind(socket.get(), at.raw(), at.raw_size()) != 0 || ::listen(socket.get(), 1) != 0) return bind_error();
  return {};
}

}  // namespace

Result<HeldPort> HeldPort::take(const Address& at) {
  if (at.port() != 0) TRY(probe(at));
  HeldPort held;
  held.socket_ = Fd(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!held.socket_) return bind_error();
  set_option(held.socket_, SO_REUSEADDR);
  set_option(held.socket_, SO_REUSEPORT);
  if (::bind(held.socket_.get(), at.raw(), at.raw_size()) != 0) return bind_error();
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(held.socket_.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) return bind_error();
  held.address_ = Address::from(reinterpret_cast<sockaddr*>(&bound), size);
  return held;
}

}  // namespace cairn
