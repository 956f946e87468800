// SocketOp: one operation on a socket, awaited without a coroutine frame of its own. Use Socket and Listener; this is
// what their functions return.
#pragma once

#include <sys/uio.h>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "reactor/address.h"
#include "reactor/cancel.h"

namespace cairn::detail {

class SocketCore;

class SocketOp {
 public:
  enum class Kind : uint8_t { recv, peek, send, send_all, accept, connect };

  SocketOp(SocketCore* core, Kind kind, std::span<iovec> vectors, CancelToken token)
      : core_(core), vectors_(vectors), token_(token), kind_(kind) {}
  SocketOp(SocketCore* core, Kind kind, void* data, size_t size, CancelToken token)
      : core_(core), one_{data, size}, vectors_(&one_, 1), token_(token), kind_(kind) {}
  SocketOp(SocketCore* core, const Address& peer, CancelToken token)
      : core_(core), peer_(peer), token_(token), kind_(Kind::connect) {}
  SocketOp(const SocketOp&) = delete;
  SocketOp& operator=(const SocketOp&) = delete;
  ~SocketOp();

  bool await_ready();
  void await_suspend(std::coroutine_handle<> handle);

 protected:
  // The outcome, once resumed.
  Error error() const;
  bool failed() const { return reason_ != Errc::ok || errno_ != 0; }
  size_t done() const { return done_; }
  int accepted() { return std::exchange(accepted_, -1); }

 private:
  friend class SocketCore;
  static void on_cancel(void* self);
  // True when finished, well or badly; false when it would block.
  bool attempt();
  bool attempt_recv(int flags);
  bool attempt_send();
  bool attempt_accept();
  bool attempt_connect();
  bool keep_errno();
  // Resumes the coroutine in this round.
  void finish(Errc reason);

  SocketCore* core_;
  iovec one_{};
  std::span<iovec> vectors_;
  Address peer_;
  CancelToken token_;
  CancelCallback callback_;
  std::coroutine_handle<> handle_;
  size_t done_ = 0;
  int errno_ = 0;
  int accepted_ = -1;
  Errc reason_ = Errc::ok;
  Kind kind_;
  bool yielded_ = false;
  bool waiting_ = false;  // Invariant: a Side of core_ knows this op while set
};

// Result<size_t>: bytes moved. Receiving, 0 means that the peer has ended its sending direction.
class [[nodiscard]] TransferAwaiter : public SocketOp {
 public:
  using SocketOp::SocketOp;
  Result<size_t> await_resume() {
    if (failed()) return error();
    return done();
  }
};

// Result<void>: everything, or an error.
class [[nodiscard]] CompletionAwaiter : public SocketOp {
 public:
  using SocketOp::SocketOp;
  Result<void> await_resume() {
    if (failed()) return error();
    return {};
  }
};

}  // namespace cairn::detail
