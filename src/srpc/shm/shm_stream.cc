#include "srpc/shm/shm_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "reactor/fd_watch.h"
#include "srpc/shm/shm_poll_group.h"

namespace cairn::srpc::shm {
namespace {

using How = stream::Moved::How;

size_t ring_to_peer(stream::Role side) { return side == stream::Role::client ? 0 : 1; }
size_t ring_from_peer(stream::Role side) { return side == stream::Role::client ? 1 : 0; }

constexpr const char* kBadPositions = "the peer wrote nonsense into the shared memory";
constexpr const char* kBadPieces = "the peer named memory that it doesn't share";

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
      shm_group_(group),
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
  if (!kept_.empty()) shm_group_.hold_until_gone(std::move(link_.socket), std::move(kept_));
}

void ShmPollGroup::hold_until_gone(Fd socket, std::vector<mem::BufChain>&& memory) {
  scope().spawn(&ShmPollGroup::hold, this, std::move(socket), std::move(memory));
}

Task<void> ShmPollGroup::hold(ShmPollGroup* self, Fd socket, [[maybe_unused]] std::vector<mem::BufChain> memory) {
  const CancelToken token = self->scope().token();
  FdWatch watch(self->reactor(), socket.get());
  std::array<char, 64> rings;
  for (;;) {
    const ssize_t n = ::recv(socket.get(), rings.data(), rings.size(), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) co_return;
    if (n < 0 && !co_await watch.readable(token)) co_return;
  }
}

void ShmStream::leave() {
  let_go();
  if (poll_ == nullptr) return;
  // A poll in the ring holds the file open: without the shutdown the peer would hear of the end only when the ring has
  // let go. Ours is still to be heard where memory is kept for the peer.
  if (link_.socket && (poll_->in_ring() || !kept_.empty())) {
    ::shutdown(link_.socket.get(), kept_.empty() ? SHUT_RDWR : SHUT_WR);
  }
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
  if (stream.broken_ != nullptr || (stream.receiving() && !stream.hot())) stream.events().on_receivable();
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
  shm_group_.bells().add();
  // Where there is no room for one more, the other has enough to hear.
  (void)::send(link_.socket.get(), &ring, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Also when it is found out while sending, reading tells it.
stream::Moved ShmStream::fail(const char* why) {
  if (broken_ == nullptr) broken_ = why;
  look_again_.post();
  return {How::failed, 0, broken_};
}

stream::Moved ShmStream::receive(std::span<iovec> vectors) {
  // In this order: what was written before the end is there when the end is seen.
  const bool ended = hung_up_ || consumer_.ended();
  const auto available = consumer_.available();
  if (!available || broken_ != nullptr) return fail(kBadPositions);
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
  if (!room || broken_ != nullptr) return fail(kBadPositions);
  const size_t n = producer_.write(vectors, *room);
  if (producer_.must_ring()) ring_bell();
  return {How::some, n};
}

void ShmStream::shutdown_send() {
  producer_.end();
  if (producer_.must_ring()) ring_bell();
}

stream::OneSided* ShmStream::one_sided() {
  return link_.shares_memory || link_.peer_memory != nullptr ? this : nullptr;
}

bool ShmStream::name(const mem::BufChain& memory, size_t most, std::vector<stream::RemotePiece>& pieces) {
  const std::span<const std::byte> arena = shm_group_.arena().memory();
  if (memory.slices().size() > most) return false;
  for (const mem::Buf& buf : memory.slices()) {
    if (buf.data() < arena.data() || buf.data() + buf.size() > arena.data() + arena.size()) return false;
    pieces.push_back({.address = static_cast<uint64_t>(buf.data() - arena.data()),
                      .bytes = static_cast<uint32_t>(buf.size()),
                      .key = 0});
  }
  return true;
}

void ShmStream::keep(std::vector<mem::BufChain>&& memory) { kept_ = std::move(memory); }

void ShmStream::begin(std::unique_ptr<stream::Transfer> transfer) {
  const PeerMemory& memory = *link_.peer_memory;
  if (!std::ranges::all_of(transfer->remote, [&](const auto& piece) { return memory.contains(piece); })) {
    (void)fail(kBadPieces);
    return transfer->done(false);
  }
  const bool pull = transfer->direction == stream::Transfer::Direction::pull;
  stream::for_each_run(transfer->local, transfer->remote, [&](auto local, const auto& piece, size_t offset) {
    std::byte* remote = memory.at(piece) + offset;
    // Of a transfer that is pulled, the memory is ours to fill.
    auto* mine = const_cast<std::byte*>(local.data());
    // cairn-allow(memcpy): what a network card would do; counted below
    std::memcpy(pull ? mine : remote, pull ? remote : mine, local.size());
  });
  shm_group_.moved_bytes().add(transfer->local.size());
  transfer->done(true);
}

std::unique_ptr<DetachedEndpoint> ShmStream::detach() {
  Link link = std::move(link_);
  link.written = producer_.head();
  link.taken = consumer_.tail();
  leave();
  return std::make_unique<ShmDetached>(std::move(link));
}

}  // namespace cairn::srpc::shm
