#include "srpc/tcp/tcp_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace cairn::srpc::tcp {
namespace {

class TcpDetached final : public DetachedEndpoint {
 public:
  TcpDetached(Fd fd, std::string peer) : fd_(std::move(fd)), peer_(std::move(peer)) {}
  std::unique_ptr<Endpoint> attach(PollGroup& group) override {
    return static_cast<TcpPollGroup&>(group).make_endpoint(std::move(fd_), std::move(peer_));
  }

 private:
  Fd fd_;
  std::string peer_;
};

stream::Moved failure(const char* call) {
  using How = stream::Moved::How;
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {How::would_block};
  return {How::failed, 0, std::string(call) + ": " + std::strerror(errno)};
}

}  // namespace

TcpStream::TcpStream(TcpPollGroup& group, Fd fd, std::string peer)
    : group_(group), fd_(std::move(fd)), peer_(std::move(peer)) {
  const int on = 1;
  // Fails only on sockets that aren't TCP (socketpairs in tests), where there is nothing to delay.
  (void)setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

TcpStream::~TcpStream() { let_go(); }

void TcpStream::let_go() {
  group_.forget_dirty(*this);
  group_.forget_hot(*this);
  if (poll_ == nullptr) return;
  // A poll in the ring holds the file open: without the shutdown the peer would hear of the end only when the ring has
  // let go.
  if (poll_->in_ring() && fd_) ::shutdown(fd_.get(), SHUT_RDWR);
  std::exchange(poll_, nullptr)->let_go();
}

void TcpStream::start(stream::StreamEvents& events) {
  ASSERT(events_ == nullptr);
  events_ = &events;
  poll_ = SocketPoll::make(group_.reactor_, fd_.get(), *this);
  expect_more(true);
}

void TcpStream::expect_more(bool hot_wanted) {
  if (!receiving_ || hot_) return;
  if (hot_wanted && group_.may_be_hot()) {
    poll_->disarm_in();
    group_.add_hot(*this);
  } else {
    poll_->arm_in();
  }
}

void TcpStream::on_poll_in(bool hung_up) {
  hung_up_ = hung_up_ || hung_up;
  if (!receiving_ || hot_) return;
  // What comes soon after a notification is caught by trying; a connection that doesn't stay busy cools down again.
  expect_more(true);
  events_->on_receivable();
}

void TcpStream::set_receiving(bool wanted) {
  if (receiving_ == wanted) return;
  receiving_ = wanted;
  if (!wanted) {
    group_.forget_hot(*this);
    poll_->disarm_in();
  } else {
    expect_more(true);
  }
}

void TcpStream::want_flush() {
  if (!dirty_) group_.add_dirty(*this);
  dirty_ = true;
}

stream::Moved TcpStream::receive(std::span<iovec> vectors) {
  ssize_t n = 0;
  do {
    if (vectors.size() == 1) {
      n = ::recv(fd_.get(), vectors[0].iov_base, vectors[0].iov_len, MSG_DONTWAIT);
    } else {
      msghdr message{};
      message.msg_iov = vectors.data();
      message.msg_iovlen = vectors.size();
      n = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
    }
  } while (n < 0 && errno == EINTR);
  if (n < 0) return failure("recv");
  received_ = true;
  if (n == 0) return {stream::Moved::How::end, 0, {}};
  return {stream::Moved::How::some, static_cast<size_t>(n), {}, hung_up_};
}

stream::Moved TcpStream::send(std::span<iovec> vectors) {
  ssize_t n = 0;
  do {
    if (vectors.size() == 1) {
      n = ::send(fd_.get(), vectors[0].iov_base, vectors[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else {
      msghdr message{};
      message.msg_iov = vectors.data();
      message.msg_iovlen = std::min<size_t>(vectors.size(), IOV_MAX);
      n = ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
  } while (n < 0 && errno == EINTR);
  if (n >= 0) return {stream::Moved::How::some, static_cast<size_t>(n), {}};
  stream::Moved moved = failure("send");
  if (moved.how == stream::Moved::How::would_block && poll_ != nullptr) poll_->arm_out();
  return moved;
}

void TcpStream::shutdown_send() { (void)::shutdown(fd_.get(), SHUT_WR); }

std::unique_ptr<DetachedEndpoint> TcpStream::detach() {
  Fd fd = std::move(fd_);
  let_go();
  return std::make_unique<TcpDetached>(std::move(fd), std::move(peer_));
}

}  // namespace cairn::srpc::tcp
