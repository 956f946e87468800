#include "srpc/inproc/cross_endpoint.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "mem/copy.h"

namespace cairn::srpc::inproc {
namespace {

// Messages delivered in one round; the rest waits for the next, so that others get their turn.
constexpr size_t kBudget = 64;

bool is_ours_alone(const mem::BufChain& data) {
  return std::ranges::all_of(data.slices(), [](const mem::Buf& buf) { return buf.unique(); });
}

}  // namespace

void Parcel::arrive(RemoteWork& work) {
  std::unique_ptr<Parcel> self(&static_cast<Parcel&>(work));
  CrossLink::Side& side = self->link->side(self->to);
  if (side.endpoint != nullptr) {
    side.endpoint->receive(std::move(self));
  } else if (self->what == What::close) {
    (new Parcel(self->link, 1 - self->to, What::closed))->send();
  }
}

CrossEndpoint::CrossEndpoint(const Context& context, std::shared_ptr<CrossLink> link, int side, std::string peer)
    : context_(context),
      link_(std::move(link)),
      side_(side),
      peer_(std::move(peer)),
      last_received_(context_.reactor.now()),
      blocked_since_(context_.reactor.now()),
      posted_(context_.reactor, &on_posted, this) {
  ASSERT(own().reactor == &context_.reactor);
  own().endpoint = this;
}

CrossEndpoint::~CrossEndpoint() {
  own().endpoint = nullptr;
  if (copy_wait_ != nullptr) {
    copy_wait_->endpoint = nullptr;
    copy_wait_->gone.cancel();
  }
  if (!told_peer_) tell(Parcel::What::close);
}

void CrossEndpoint::start(EndpointEvents& events) {
  ASSERT(events_ == nullptr);
  events_ = &events;
  posted_.post();
}

size_t CrossEndpoint::queued_bytes() const {
  return link_->sides[static_cast<size_t>(side_)].undelivered.load(std::memory_order_relaxed);
}

// --- Sending ---

void CrossEndpoint::send(Header header, std::span<const std::byte> metadata, mem::BufChain&& data, mem::BufChain&&) {
  ASSERT(metadata.size() <= kMaxMetadata && data.size() <= kMaxData);
  if (!open_ || peer_closed_) return;
  auto parcel = std::make_unique<Parcel>(link_, 1 - side_, Parcel::What::message);
  header.metadata_bytes = static_cast<uint16_t>(metadata.size());
  header.data_bytes = static_cast<uint32_t>(data.size());
  parcel->header = header;
  parcel->metadata.assign(metadata.begin(), metadata.end());
  parcel->data = std::move(data);
  parcel->weight = kHeaderBytes + metadata.size() + parcel->data.size();
  if (own().undelivered.fetch_add(parcel->weight) == 0) blocked_since_ = context_.reactor.now();
  outbox_.push_back(std::move(parcel));
  if (outbox_.size() == 1) ship();
}

void CrossEndpoint::ship() {
  while (!outbox_.empty()) {
    Parcel& first = *outbox_.front();
    if (!is_ours_alone(first.data)) {
      copy_wait_ = std::make_shared<CopyWait>();
      copy_wait_->endpoint = this;
      // May have it at once; got_copy() goes on then.
      context_.scope.spawn(&CrossEndpoint::copy_front, copy_wait_, &context_.pool, first.data.size());
      return;
    }
    outbox_.front().release()->send();
    outbox_.pop_front();
  }
  if (!open_ && !told_peer_) {
    told_peer_ = true;
    tell(Parcel::What::close);
  }
}

void CrossEndpoint::tell_when_sent() {
  // The other side looks at these two in the opposite order, so one of us sees both.
  own().wants_drained.store(true);
  if (own().undelivered.load() > 0 || !own().wants_drained.exchange(false)) return;
  drained_ = true;
  posted_.post();
}

Task<void> CrossEndpoint::copy_front(std::shared_ptr<CopyWait> wait, mem::Pool* pool, size_t bytes) {
  auto memory = co_await pool->alloc_chain(bytes, mem::Purpose::internal, wait->gone);
  if (wait->endpoint != nullptr) wait->endpoint->got_copy(std::move(memory));
}

void CrossEndpoint::got_copy(Result<mem::BufChain> memory) {
  copy_wait_.reset();
  Parcel& first = *outbox_.front();
  if (!memory) {
    // Only a payload larger than all memory, which no pool has given us.
    outbox_.clear();
    return close({CloseReason::too_large, memory.error().to_string()});
  }
  std::array<iovec, 1> piece;
  size_t at = 0;
  first.data.for_each([&](std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      ASSERT(memory->to_iovecs(piece, at) == 1);
      const size_t n = std::min(piece[0].iov_len, bytes.size());
      mem::copy_payload(context_.pool.copied(), {static_cast<std::byte*>(piece[0].iov_base), n}, bytes.first(n));
      bytes = bytes.subspan(n);
      at += n;
    }
  });
  first.data = *std::move(memory);
  ship();
}

// --- Receiving ---

void CrossEndpoint::receive(std::unique_ptr<Parcel> parcel) {
  switch (parcel->what) {
    case Parcel::What::message:
      if (!open_) return;  // and what it carried goes home
      last_received_ = context_.reactor.now();
      parcel->header.batch = 0;
      inbox_.push_back(std::move(parcel));
      // In place of a post: this is a round's turn already. Behind others, it waits for its own.
      if (inbox_.size() == 1) return deliver();
      break;
    case Parcel::What::drained:
      if (open_ && events_ != nullptr) events_->on_sent();
      return;
    case Parcel::What::close:
      tell(Parcel::What::closed);
      peer_closed_ = true;
      paused_ = false;  // a paused end that waits for its peer to read would never hear of it
      break;
    case Parcel::What::closed:
      answered_ = true;
      break;
  }
  posted_.post();
}

void CrossEndpoint::deliver() {
  if (events_ == nullptr) return;
  if (std::exchange(drained_, false) && open_) events_->on_sent();
  for (size_t n = 0; n < kBudget && open_ && !paused_ && !inbox_.empty(); ++n) {
    const std::unique_ptr<Parcel> parcel = std::move(inbox_.front());
    inbox_.pop_front();
    if (other().undelivered.fetch_sub(parcel->weight) == parcel->weight && other().wants_drained.exchange(false)) {
      tell(Parcel::What::drained);
    }
    Incoming message{parcel->header, parcel->metadata, std::move(parcel->data), false, last_received_};
    events_->on_message(message);
  }
  if (open_ && !inbox_.empty()) {
    if (!paused_) posted_.post();
    return;
  }
  // The end comes behind what was sent before it, and when the other side has no parcel for us any more.
  const bool nothing_comes = told_peer_ ? answered_ : peer_closed_;
  if (!nothing_comes || told_closed_) return;
  told_closed_ = true;
  told_peer_ = true;  // if not, it has closed itself
  if (std::exchange(open_, false)) close_ = {CloseReason::peer_closed, peer_ + " ended the connection"};
  inbox_.clear();
  outbox_.clear();
  events_->on_closed(close_);
}

void CrossEndpoint::resume() {
  paused_ = false;
  posted_.post();
}

void CrossEndpoint::close(Close close) {
  if (!open_) return;
  open_ = false;
  close_ = std::move(close);
  inbox_.clear();
  // Behind what is still to be sent.
  if (outbox_.empty()) ship();
  posted_.post();
}

EndpointStatus CrossEndpoint::status() const {
  return {.last_received = paused_ ? context_.reactor.now() : last_received_,
          .receiving_since = Time::never(),
          .send_blocked_since = queued_bytes() == 0 ? Time::never() : blocked_since_};
}

}  // namespace cairn::srpc::inproc
