#include "srpc/rdma/rdma_stream.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "srpc/rdma/rdma_poll_group.h"

namespace cairn::srpc::rdma {
namespace {

using How = stream::Moved::How;

}  // namespace

RdmaStream::RdmaStream(RdmaPollGroup& group, std::unique_ptr<Link> link, std::string peer)
    : GroupedStream(group), group_(group), link_(std::move(link)), peer_(std::move(peer)) {
  link_->set_user(this);
}

RdmaStream::~RdmaStream() {
  let_go();
  group_.forget_ready(*this);
  if (poll_ != nullptr) std::exchange(poll_, nullptr)->let_go();
  group_.bury(std::move(link_), std::move(kept_), std::move(socket_));
}

void RdmaStream::hold(Fd socket) {
  ASSERT(poll_ == nullptr && socket);
  socket_ = std::move(socket);
  poll_ = stream::SocketPoll::make(group_.reactor(), socket_.get(), *this);
  if (opened_) poll_->arm_in();
}

void RdmaStream::open() {
  opened_ = true;
  if (poll_ != nullptr) poll_->arm_in();
}

void RdmaStream::watch() {
  watched_ = true;
  if (readable()) on_link_news();
}

void RdmaStream::on_link_news() {
  if (!std::exchange(ready_, true)) group_.add_ready(*this);
}

void RdmaStream::on_poll_in(bool hung_up) {
  std::byte byte{};
  ssize_t n = 0;
  do {
    n = ::recv(socket_.get(), &byte, 1, MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n > 0) link_->fail("the peer talks over TCP again");
  if (!hung_up && (n > 0 || (n < 0 && errno == EAGAIN))) return;
  hang_up_due_ = true;
  on_link_news();
}

stream::Moved RdmaStream::receive(std::span<iovec> vectors) {
  if (const size_t n = link_->receive(vectors); n > 0) {
    received();
    return {How::some, n, {}, readable()};
  }
  if (link_->ended()) return {How::end};
  if (link_->failed()) return failure();
  return {hung_up_ ? How::end : How::would_block};
}

stream::Moved RdmaStream::send(std::span<iovec> vectors) {
  if (link_->failed()) return failure();
  if (hung_up_) return {How::failed, 0, "rdma: the other process has ended"};
  if (const size_t n = link_->send(vectors); n > 0) return {How::some, n};
  if (link_->failed()) return failure();
  blocked_ = true;
  group_.metrics().stalled(link_->one_sided().holds_push());
  return {How::would_block};
}

bool RdmaStream::name(const mem::BufChain& memory, size_t most, std::vector<stream::RemotePiece>& pieces) {
  if (link_->role() != Role::client || memory.slices().size() > most) return false;
  const size_t before = pieces.size();
  for (const mem::Buf& buf : memory.slices()) {
    const auto keys = link_->rail().device().keys(Role::client, buf.bytes());
    if (!keys) {
      pieces.resize(before);
      return false;
    }
    pieces.push_back({.address = reinterpret_cast<uintptr_t>(buf.data()),
                      .bytes = static_cast<uint32_t>(buf.size()),
                      .key = keys->remote});
  }
  return true;
}

void RdmaStream::keep(std::vector<mem::BufChain>&& memory) {
  for (mem::BufChain& chain : memory) kept_.push_back(std::move(chain));
}

void RdmaStream::begin(std::unique_ptr<stream::Transfer> transfer) {
  ASSERT(link_->role() == Role::server);
  if (!link_->one_sided().begin(std::move(transfer))) {
    link_->fail(link_->rail().device().name() + ": payload in memory that isn't registered");
  }
}

}  // namespace cairn::srpc::rdma
