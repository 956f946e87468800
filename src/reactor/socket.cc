#include "reactor/socket.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/assert.h"
#include "reactor/listener.h"
#include "reactor/reactor.h"
#include "reactor/socket_core.h"

namespace cairn {
namespace {

using detail::SocketCore;

void set_option(int fd, int level, int name) {
  const int on = 1;
  // Fails only where the option makes no sense (a Unix socket has no Nagle algorithm), which harms nobody.
  (void)::setsockopt(fd, level, name, &on, sizeof on);
}

Address name_of(SocketCore* core, int (*ask)(int, sockaddr*, socklen_t*)) {
  if (core == nullptr) return {};
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (ask(core->fd(), address, &length) < 0) return {};
  return Address::from(address, length);
}

}  // namespace

Socket::Socket(Reactor& reactor, Fd fd) {
  ASSERT(fd);
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) == 0) (void)::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK);
  core_ = new SocketCore(reactor, std::move(fd), SocketCore::Use::connection);
}

Task<Result<Socket>> Socket::connect(Reactor& reactor, Address to, CancelToken token) {
  if (!to.valid()) co_return Error(Errc::invalid_argument, "connect: no address");
  Fd fd(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) co_return error_from_errno(errno, "socket");
  set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY);
  Socket socket(reactor, std::move(fd));
  CO_TRY(co_await detail::CompletionAwaiter(socket.core_, to, token));
  co_return std::move(socket);
}

Reactor& Socket::reactor() const {
  ASSERT(core_ != nullptr);
  return core_->reactor();
}

int Socket::fd() const { return core_ == nullptr ? -1 : core_->fd(); }
Address Socket::local() const { return name_of(core_, &::getsockname); }
Address Socket::peer() const { return name_of(core_, &::getpeername); }

void Socket::shutdown_send() {
  // ENOTCONN: the peer has reset the connection, and there is nobody left to tell.
  if (core_ != nullptr) (void)::shutdown(core_->fd(), SHUT_WR);
}

void Socket::close() {
  if (core_ != nullptr) SocketCore::close(std::exchange(core_, nullptr));
}

Fd Socket::release() {
  ASSERT(core_ != nullptr);
  return SocketCore::release(std::exchange(core_, nullptr));
}

Result<Listener> Listener::open(Reactor& reactor, const Address& at, Options options) {
  Fd fd(::socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return error_from_errno(errno, "socket");
  // After a restart the port may have connections in TIME_WAIT.
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR);
  if (options.reuse_port) set_option(fd.get(), SOL_SOCKET, SO_REUSEPORT);
  if (at.family() == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY);
  if (::bind(fd.get(), at.raw(), at.raw_size()) < 0 || ::listen(fd.get(), options.backlog) < 0) {
    const int error = errno;
    auto failed = error_from_errno(error, "listen on " + at.to_string());
    if (error != EADDRINUSE) return failed;
    return std::move(failed).with_context("another process uses the port: stop it or choose another port");
  }
  Listener listener;
  listener.core_ = new SocketCore(reactor, std::move(fd), SocketCore::Use::listener);
  return listener;
}

Address Listener::local() const { return name_of(core_, &::getsockname); }

void Listener::close() {
  if (core_ != nullptr) SocketCore::close(std::exchange(core_, nullptr));
}

Listener::AcceptAwaiter::AcceptAwaiter(SocketCore* core, CancelToken token)
    : SocketOp(core, Kind::accept, {}, token), reactor_(core == nullptr ? nullptr : &core->reactor()) {}

Result<Socket> Listener::AcceptAwaiter::await_resume() {
  if (failed()) return error();
  Fd fd(accepted());
  set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY);
  return Socket(*reactor_, std::move(fd));
}

}  // namespace cairn
