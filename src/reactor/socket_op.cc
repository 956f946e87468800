#include "reactor/socket_op.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/assert.h"
#include "reactor/socket_core.h"

namespace cairn::detail {
namespace {

constexpr const char* kNames[] = {"recv", "recv", "send", "send", "accept", "connect"};

}  // namespace

SocketOp::~SocketOp() {
  ASSERT(!waiting_);
  if (accepted_ >= 0) ::close(accepted_);
}

bool SocketOp::await_ready() {
  reason_ = core_ == nullptr ? Errc::closed : token_.reason();
  if (reason_ != Errc::ok) return true;
  if (kind_ == Kind::recv && core_->in_.drained()) return false;
  if (core_->reactor().take_turn()) return attempt();
  yielded_ = true;
  return false;
}

void SocketOp::await_suspend(std::coroutine_handle<> handle) {
  handle_ = handle;
  waiting_ = true;
  auto& side = kind_ <= Kind::peek || kind_ == Kind::accept ? core_->in_ : core_->out_;
  side.wait(*this, yielded_);
  callback_.arm(token_, &on_cancel, this);
}

void SocketOp::on_cancel(void* self) {
  auto& op = *static_cast<SocketOp*>(self);
  op.finish(op.token_.reason());
}

void SocketOp::finish(Errc reason) {
  ASSERT(waiting_);
  waiting_ = false;
  reason_ = reason;
  callback_.reset();
  auto& side = core_->in_.waiter() == this ? core_->in_ : core_->out_;
  ASSERT(side.waiter() == this);
  side.forget();
  core_->reactor().post(handle_);
}

Error SocketOp::error() const {
  const char* name = kNames[static_cast<size_t>(kind_)];
  if (errno_ != 0) {
    return error_from_errno(errno_, peer_.valid() ? std::string(name) + " to " + peer_.to_string() : name);
  }
  return Error(reason_, name);
}

bool SocketOp::keep_errno() {
  if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
  errno_ = errno;
  return true;
}

bool SocketOp::attempt() {
  switch (kind_) {
    case Kind::recv:
      return attempt_recv(MSG_DONTWAIT);
    case Kind::peek:
      return attempt_recv(MSG_DONTWAIT | MSG_PEEK);
    case Kind::send:
    case Kind::send_all:
      return attempt_send();
    case Kind::accept:
      return attempt_accept();
    case Kind::connect:
      return attempt_connect();
  }
  return true;
}

bool SocketOp::attempt_recv(int flags) {
  size_t asked = 0;
  for (const iovec& vector : vectors_) asked += vector.iov_len;
  ASSERT(asked > 0);  // or 0 received would read like the end of the stream
  ssize_t n = 0;
  do {
    if (vectors_.size() == 1) {
      n = ::recv(core_->fd(), vectors_[0].iov_base, vectors_[0].iov_len, flags);
    } else {
      msghdr message{};
      message.msg_iov = vectors_.data();
      message.msg_iovlen = std::min<size_t>(vectors_.size(), IOV_MAX);
      n = ::recvmsg(core_->fd(), &message, flags);
    }
  } while (n < 0 && errno == EINTR);
  if (n < 0) return keep_errno();
  done_ = static_cast<size_t>(n);
  if (done_ > 0 && done_ < asked && kind_ == Kind::recv) core_->in_.note_short_receive();
  return true;
}

bool SocketOp::attempt_send() {
  for (;;) {
    while (!vectors_.empty() && vectors_.front().iov_len == 0) vectors_ = vectors_.subspan(1);
    if (vectors_.empty()) return true;
    ssize_t n = 0;
    if (vectors_.size() == 1) {
      n = ::send(core_->fd(), vectors_[0].iov_base, vectors_[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else {
      msghdr message{};
      message.msg_iov = vectors_.data();
      message.msg_iovlen = std::min<size_t>(vectors_.size(), IOV_MAX);
      n = ::sendmsg(core_->fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return keep_errno();
    done_ += static_cast<size_t>(n);
    if (kind_ == Kind::send) return true;
    for (auto left = static_cast<size_t>(n); left > 0;) {
      iovec& first = vectors_.front();
      const size_t part = std::min(left, first.iov_len);
      first.iov_base = static_cast<std::byte*>(first.iov_base) + part;
      first.iov_len -= part;
      left -= part;
      if (first.iov_len == 0) vectors_ = vectors_.subspan(1);
    }
  }
}

bool SocketOp::attempt_accept() {
  for (;;) {
    accepted_ = ::accept4(core_->fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted_ >= 0) return true;
    // A connection that ended while it waited in the backlog is nobody's business.
    if (errno != EINTR && errno != ECONNABORTED) return keep_errno();
  }
}

bool SocketOp::attempt_connect() {
  // Called again after POLLOUT, connect(2) tells how it went.
  while (::connect(core_->fd(), peer_.raw(), peer_.raw_size()) < 0) {
    if (errno == EISCONN) return true;
    if (errno == EINPROGRESS || errno == EALREADY) return false;
    if (errno != EINTR) {
      errno_ = errno;
      return true;
    }
  }
  return true;
}

}  // namespace cairn::detail
