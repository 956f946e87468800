#include "srpc/shm/shm_stream.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "srpc/shm/shm_poll_group.h"

namespace cairn::srpc::shm {
namespace {

using How = stream::Moved::How;

size_t ring_to_peer(Side side) { return side == Side::client ? 0 : 1; }
size_t ring_from_peer(Side side) { return side == Side::client ? 1 : 0; }

class ShmDetached final : public DetachedEndpoint {
 public:
  explicit ShmDetached(Link link) : link_(std::move(link)) {}
  std::unique_ptr<Endpoint> attach(PollGroup& group) override {
    auto* mine = dynamic_cast<ShmPollGroup*>(&group);
    return mine == nullptr ? nullptr : mine->make_endpoint(std::move(link_));
  }

 private:
  Link link_;
};

}  // namespace

std::unique_ptr<Endpoint> ShmPollGroup::make_endpoint(Link link) {
  return StreamGroup::make_endpoint(std::make_unique<ShmStream>(*this, std::move(link)));
}

ShmStream::ShmStream(ShmPollGroup& group, Link link)
    : GroupedStream(group),
      bells_(group.bells()),
      link_(std::move(link)),
      producer_(link_.segment.control(ring_to_peer(link_.side)), link_.segment.bytes(ring_to_peer(link_.side)),
                link_.written),
      consumer_(link_.segment.control(ring_from_peer(link_.side)), link_.segment.bytes(ring_from_peer(link_.side)),
                link_.taken),
      look_again_(group.reactor(), &on_look_again, this) {}

ShmStream::~ShmStream() {
  if (gone_ != nullptr) *gone_ = true;
  if (link_.socket) shutdown_send();
  leave();
}

void ShmStream::leave() {
  let_go();
  if (poll_ == nullptr) return;
  // A poll in the ring holds the file open: without the shutdown the peer would hear of the end only when the ring has
  // let go.
  if (poll_->in_ring() && link_.socket) ::shutdown(link_.socket.get(), SHUT_RDWR);
  std::exchange(poll_, nullptr)->let_go();
}

void ShmStream::open() {
  poll_ = stream::SocketPoll::make(group().reactor(), link_.socket.get(), *this);
  // Always, also while hot: it tells that the other process has ended, and costs nothing as long as it is silent.
  poll_->arm_in();
}

void ShmStream::watch() {
  // That the peer is gone was told once.
  if (!consumer_.wait_for_bytes() || hung_up_) look_again_.post();
}

void ShmStream::on_look_again(void* self) {
  auto& stream = *static_cast<ShmStream*>(self);
  if (stream.broken_ || (stream.receiving() && !stream.hot())) stream.events().on_receivable();
}

void ShmStream::try_now() {
  if (go_on_sending() && hot()) events().on_receivable();
}

bool ShmStream::go_on_sending() {
  if (!blocked_) return true;
  const auto room = producer_.room();
  if (room == size_t{0} && !hung_up_) return true;
  blocked_ = false;
  bool gone = false;
  gone_ = &gone;
  events().on_sendable();
  if (gone) return false;
  gone_ = nullptr;
  return true;
}

void ShmStream::on_poll_in(bool hung_up) {
  hear_bell();
  hung_up_ = hung_up_ || hung_up;
  if (!go_on_sending()) return;
  if (!receiving() || hot()) return;
  // What comes soon after a notification is caught by trying; a connection that doesn't stay busy cools down again.
  expect_more(true);
  events().on_receivable();
}

void ShmStream::hear_bell() {
  std::array<char, 64> rings;
  ssize_t n = 0;
  do {
    n = ::recv(link_.socket.get(), rings.data(), rings.size(), MSG_DONTWAIT);
  } while (n == static_cast<ssize_t>(rings.size()) || (n < 0 && errno == EINTR));
  if (n == 0 || (n < 0 && errno != EAGAIN)) hung_up_ = true;
}

void ShmStream::ring_bell() {
  const char ring = '!';
  bells_.add();
  // Where there is no room for one more, the other has enough to hear.
  (void)::send(link_.socket.get(), &ring, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Also when it is found out while sending, reading tells it.
stream::Moved ShmStream::fail() {
  broken_ = true;
  look_again_.post();
  return {How::failed, 0, "the peer wrote nonsense into the shared memory"};
}

stream::Moved ShmStream::receive(std::span<iovec> vectors) {
  // In this order: what was written before the end is there when the end is seen.
  const bool ended = hung_up_ || consumer_.ended();
  const auto available = consumer_.available();
  if (!available || broken_) return fail();
  if (*available == 0) return {ended ? How::end : How::would_block};
  const size_t n = consumer_.read(vectors, *available);
  received();
  if (consumer_.must_ring()) ring_bell();
  return {How::some, n, {}, ended};
}

stream::Moved ShmStream::send(std::span<iovec> vectors) {
  if (hung_up_) return {How::failed, 0, "send: the other process has ended"};
  auto room = producer_.room();
  if (room == size_t{0}) {
    blocked_ = producer_.wait_for_room();
    if (blocked_) return {How::would_block};
    room = producer_.room();
  }
  if (!room) return fail();
  const size_t n = producer_.write(vectors, *room);
  if (producer_.must_ring()) ring_bell();
  return {How::some, n};
}

void ShmStream::shutdown_send() {
  producer_.end();
  if (producer_.must_ring()) ring_bell();
}

std::unique_ptr<DetachedEndpoint> ShmStream::detach() {
  Link link{std::move(link_.socket), std::move(link_.segment), link_.side, link_.peer,
            producer_.head(),        consumer_.tail()};
  leave();
  return std::make_unique<ShmDetached>(std::move(link));
}

}  // namespace cairn::srpc::shm
