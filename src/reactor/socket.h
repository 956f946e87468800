// Socket: a TCP connection on a reactor. Calls are plain non-blocking ones first; see socket_core.h for how they wait.
//
//   TRY / CO_TRY(auto socket, co_await Socket::connect(reactor, address, token));
//   CO_TRY(size_t n, co_await socket.recv(buffer, token));       // 0: the peer has finished sending
//   CO_TRY(co_await socket.send_all(iovecs, token));
//
// At most one operation per direction is under way at a time (asserted); the memory it uses stays in place until it has
// ended. Errors: closed (reset by the peer, or by our own close()), cancelled or timed_out (the token's reason; bytes
// may have been moved), io_error. After an error of a send the connection is of no more use: part of it may have gone.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <utility>

#include "base/fd.h"
#include "base/status.h"
#include "reactor/address.h"
#include "reactor/cancel.h"
#include "reactor/socket_op.h"
#include "reactor/task.h"

namespace cairn {

class Reactor;

class Socket {
 public:
  // Not connected: everything fails with Errc::closed.
  Socket() = default;
  // Takes over a connected stream socket, which becomes non-blocking.
  Socket(Reactor& reactor, Fd fd);
  Socket(Socket&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~Socket() { close(); }

  // TCP_NODELAY is set. Errors: unavailable (refused, unreachable), timed_out, ...
  static Task<Result<Socket>> connect(Reactor& reactor, Address to, CancelToken token = {});

  explicit operator bool() const { return core_ != nullptr; }
  Reactor& reactor() const;
  int fd() const;
  // Invalid addresses when closed.
  Address local() const;
  Address peer() const;

  // Whatever is there, up to into.size() > 0 bytes.
  detail::TransferAwaiter recv(std::span<std::byte> into, CancelToken token = {}) {
    return {core_, detail::SocketOp::Kind::recv, into.data(), into.size(), token};
  }
  detail::TransferAwaiter recv_vectors(std::span<iovec> into, CancelToken token = {}) {
    return {core_, detail::SocketOp::Kind::recv, into, token};
  }
  // As recv, but the bytes stay.
  detail::TransferAwaiter peek(std::span<std::byte> into, CancelToken token = {}) {
    return {core_, detail::SocketOp::Kind::peek, into.data(), into.size(), token};
  }
  // As much as the socket takes now, at least one byte.
  detail::TransferAwaiter send(std::span<iovec> from, CancelToken token = {}) {
    return {core_, detail::SocketOp::Kind::send, from, token};
  }
  // Everything. The entries of `from` are changed on the way.
  detail::CompletionAwaiter send_all(std::span<iovec> from, CancelToken token = {}) {
    return {core_, detail::SocketOp::Kind::send_all, from, token};
  }
  detail::CompletionAwaiter send_all(std::span<const std::byte> from, CancelToken token = {}) {
    return {core_, detail::SocketOp::Kind::send_all, const_cast<std::byte*>(from.data()), from.size(), token};
  }

  // No more will be sent: the peer's receives end with 0 after what was sent.
  void shutdown_send();
  // Operations under way end with Errc::closed. Bytes sent before still reach the peer.
  void close();
  // Hands the connection over, to be adopted by a Socket on another reactor. Nothing may be under way. No byte is lost:
  // what hasn't been received stays in the kernel.
  Fd release();

  // For awaiters of other modules.
  detail::SocketCore* core() const { return core_; }

 private:
  detail::SocketCore* core_ = nullptr;
};

}  // namespace cairn
