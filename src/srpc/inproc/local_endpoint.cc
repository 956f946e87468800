#include "srpc/inproc/local_endpoint.h"

#include "base/assert.h"

namespace cairn::srpc::inproc {
namespace {

// Messages handed over in one round; the rest waits for the next, so that others get their turn.
constexpr size_t kBudget = 64;

}  // namespace

LocalEndpoint::LocalEndpoint(Loop& loop, std::string name)
    : loop_(loop), name_(std::move(name)), last_received_(loop.now()), posted_(loop, &on_posted, this) {}

std::pair<std::unique_ptr<LocalEndpoint>, std::unique_ptr<LocalEndpoint>> LocalEndpoint::make_pair(
    Loop& loop, const std::string& name) {
  std::unique_ptr<LocalEndpoint> a(new LocalEndpoint(loop, name));
  std::unique_ptr<LocalEndpoint> b(new LocalEndpoint(loop, name));
  a->peer_ = b.get();
  b->peer_ = a.get();
  a->handing_over_ = b->handing_over_ = std::make_shared<bool>(false);
  return {std::move(a), std::move(b)};
}

LocalEndpoint::~LocalEndpoint() {
  if (peer_ != nullptr) peer_->peer_gone();
}

void LocalEndpoint::start(EndpointEvents& events) {
  ASSERT(events_ == nullptr);
  events_ = &events;
  posted_.post();
}

void LocalEndpoint::send(Header header, std::span<const std::byte> metadata, mem::BufChain&& data, mem::BufChain&&) {
  ASSERT(metadata.size() <= kMaxMetadata && data.size() <= kMaxData);
  if (!open_ || peer_ == nullptr) return;
  header.metadata_bytes = static_cast<uint16_t>(metadata.size());
  header.data_bytes = static_cast<uint32_t>(data.size());
  peer_->receive(header, metadata, std::move(data));
}

bool LocalEndpoint::can_deliver() const { return events_ != nullptr && open_ && !paused_ && !*handing_over_; }

void LocalEndpoint::receive(Header header, std::span<const std::byte> metadata, mem::BufChain&& data) {
  last_received_ = loop_.now();
  if (!open_) return;
  if (can_deliver() && inbox_.empty()) {
    const std::shared_ptr<bool> handing_over = handing_over_;
    *handing_over = true;
    Incoming message{header, metadata, std::move(data), false, loop_.now()};
    events_->on_message(message);
    *handing_over = false;
    return;
  }
  if (inbox_.empty()) blocked_since_ = loop_.now();
  inbox_bytes_ += metadata.size() + data.size() + kHeaderBytes;
  inbox_.push_back({header, {metadata.begin(), metadata.end()}, std::move(data), loop_.now()});
  posted_.post();
}

void LocalEndpoint::deliver() {
  if (events_ == nullptr) return;
  const bool had_waiting = !inbox_.empty();
  for (size_t n = 0; n < kBudget && can_deliver() && !inbox_.empty(); ++n) {
    Waiting waiting = std::move(inbox_.front());
    inbox_.pop_front();
    inbox_bytes_ -= waiting.metadata.size() + waiting.data.size() + kHeaderBytes;
    blocked_since_ = inbox_.empty() ? Time::never() : loop_.now();
    const std::shared_ptr<bool> handing_over = handing_over_;
    *handing_over = true;
    Incoming message{waiting.header, waiting.metadata, std::move(waiting.data), false, waiting.arrived};
    events_->on_message(message);
    *handing_over = false;
  }
  if (!inbox_.empty() && open_) {
    if (!paused_) posted_.post();
    return;
  }
  if (had_waiting && peer_ != nullptr && std::exchange(peer_->tell_sent_, false)) peer_->events_->on_sent();
  // The end comes behind what was sent before it.
  if (!told_closed_ && (!open_ || peer_ == nullptr)) {
    told_closed_ = true;
    open_ = false;
    inbox_.clear();
    inbox_bytes_ = 0;
    if (close_.reason == CloseReason::none) close_ = {CloseReason::peer_closed, name_ + " ended the connection"};
    events_->on_closed(close_);
  }
}

void LocalEndpoint::resume() {
  paused_ = false;
  posted_.post();
}

void LocalEndpoint::close(Close close) {
  if (!open_) return;
  open_ = false;
  close_ = std::move(close);
  if (peer_ != nullptr) peer_->peer_gone();
  posted_.post();
}

void LocalEndpoint::peer_gone() {
  if (peer_ == nullptr) return;
  peer_->peer_ = nullptr;
  peer_ = nullptr;
  // A paused end that waits for its peer to read would never hear of it.
  paused_ = false;
  posted_.post();
}

EndpointStatus LocalEndpoint::status() const {
  return {.last_received = last_received_,
          .receiving_since = Time::never(),
          .send_blocked_since = peer_ == nullptr ? Time::never() : peer_->blocked_since_};
}

}  // namespace cairn::srpc::inproc
