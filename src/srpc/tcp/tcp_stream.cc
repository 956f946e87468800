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
#include "srpc/rdma/upgrades.h"
#include "srpc/rdma/upgrading_stream.h"
#include "srpc/tcp/tcp_poll_group.h"

namespace cairn::srpc::tcp {
namespace {

class TcpDetached final : public DetachedEndpoint {
 public:
  TcpDetached(Fd fd, std::string peer) : fd_(std::move(fd)), peer_(std::move(peer)) {}
  std::unique_ptr<Endpoint> attach(PollGroup& group) override {
    auto* mine = dynamic_cast<TcpPollGroup*>(&group);
    return mine == nullptr ? nullptr : mine->accepted(std::move(fd_), std::move(peer_));
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

std::unique_ptr<Endpoint> TcpPollGroup::make_endpoint(Fd fd, std::string peer) {
  return StreamGroup::make_endpoint(std::make_unique<TcpStream>(*this, std::move(fd), std::move(peer)));
}

std::unique_ptr<Endpoint> TcpPollGroup::connected(Fd fd, std::string peer,
                                                  std::shared_ptr<rdma::UpgradeHistory> history) {
  if (upgrades_ == nullptr || history == nullptr) return make_endpoint(std::move(fd), std::move(peer));
  return StreamGroup::make_endpoint(
      std::make_unique<rdma::UpgradingStream>(*upgrades_, rdma::Role::client, std::move(history),
                                              std::make_unique<TcpStream>(*this, std::move(fd), std::move(peer))));
}

std::unique_ptr<Endpoint> TcpPollGroup::accepted(Fd fd, std::string peer) {
  if (upgrades_ == nullptr) return make_endpoint(std::move(fd), std::move(peer));
  return StreamGroup::make_endpoint(
      std::make_unique<rdma::UpgradingStream>(*upgrades_, rdma::Role::server, upgrades_->accepted(),
                                              std::make_unique<TcpStream>(*this, std::move(fd), std::move(peer))));
}

TcpStream::TcpStream(stream::StreamGroup& group, Fd fd, std::string peer)
    : GroupedStream(group), fd_(std::move(fd)), peer_(std::move(peer)) {
  const int on = 1;
  // Fails only on sockets that aren't TCP (socketpairs in tests), where there is nothing to delay.
  (void)setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

TcpStream::~TcpStream() { leave(); }

void TcpStream::leave() {
  let_go();
  if (poll_ == nullptr) return;
  // A poll in the ring holds the file open: without the shutdown the peer would hear of the end only when the ring has
  // let go.
  if (poll_->in_ring() && fd_) ::shutdown(fd_.get(), SHUT_RDWR);
  std::exchange(poll_, nullptr)->let_go();
}

void TcpStream::open() { poll_ = stream::SocketPoll::make(group().reactor(), fd_.get(), *this); }

void TcpStream::on_poll_in(bool hung_up) {
  hung_up_ = hung_up_ || hung_up;
  if (!receiving() || hot()) return;
  // What comes soon after a notification is caught by trying; a connection that doesn't stay busy cools down again.
  expect_more(true);
  events().on_receivable();
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
  received();
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

Address TcpStream::local() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  return ::getsockname(fd_.get(), raw, &length) < 0 ? Address() : Address::from(raw, length);
}

void TcpStream::shutdown_send() { (void)::shutdown(fd_.get(), SHUT_WR); }

Fd TcpStream::release() {
  Fd fd = std::move(fd_);
  leave();
  return fd;
}

std::unique_ptr<DetachedEndpoint> TcpStream::detach() {
  Fd fd = release();
  return std::make_unique<TcpDetached>(std::move(fd), std::move(peer_));
}

}  // namespace cairn::srpc::tcp
