// Listener: accepts TCP connections on a reactor.
//
//   TRY(auto listener, Listener::open(reactor, address, {}));
//   for (;;) { CO_TRY(Socket socket, co_await listener.accept(token)); scope.spawn(&serve, std::move(socket)); }
#pragma once

#include <utility>

#include "base/status.h"
#include "reactor/address.h"
#include "reactor/cancel.h"
#include "reactor/socket.h"
#include "reactor/socket_op.h"

namespace cairn {

class Listener {
 public:
  struct Options {
    // Several listeners on one port, one per reactor: the kernel spreads the connections over them.
    bool reuse_port = false;
    int backlog = 1024;
  };

  Listener() = default;
  Listener(Listener&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  Listener& operator=(Listener&& other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~Listener() { close(); }

  // Port 0: any; see local(). Errors: busy (another process listens there), permission_denied, ...
  static Result<Listener> open(Reactor& reactor, const Address& at, Options options);

  explicit operator bool() const { return core_ != nullptr; }
  Address local() const;

  // Result<Socket>: TCP_NODELAY set, on this listener's reactor. busy: out of file descriptors or memory; wait before
  // the next call, which would fail at once.
  class AcceptAwaiter;
  AcceptAwaiter accept(CancelToken token = {});

  // An accept under way ends with Errc::closed.
  void close();

 private:
  detail::SocketCore* core_ = nullptr;
};

class [[nodiscard]] Listener::AcceptAwaiter : public detail::SocketOp {
 public:
  AcceptAwaiter(detail::SocketCore* core, CancelToken token);
  Result<Socket> await_resume();

 private:
  Reactor* reactor_;
};

inline Listener::AcceptAwaiter Listener::accept(CancelToken token) { return {core_, token}; }

}  // namespace cairn
