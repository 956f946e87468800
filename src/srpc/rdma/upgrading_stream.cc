#include "srpc/rdma/upgrading_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace cairn::srpc::rdma {
namespace {

using stream::Moved;

// More than the largest packet has room for.
constexpr size_t kProofBytes = 8192;
using Proof = std::array<std::byte, kProofBytes>;
constexpr Proof make_proof() {
  Proof proof{};
  for (size_t i = 0; i < kProofBytes; ++i) proof[i] = static_cast<std::byte>(i * 131 + i / 256);
  return proof;
}
// Not const: an iovec's bytes never are.
Proof the_proof = make_proof();

std::span<const std::byte> text_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.substr(0, kMaxMetadata)));
}
std::string text_of(std::span<const std::byte> metadata) {
  return {reinterpret_cast<const char*>(metadata.data()), metadata.size()};
}

Error wrong_moment(std::string_view what) { return {Errc::protocol_error, fmt::format("{} at a wrong moment", what)}; }

// What is behind the fields that this version knows is newer.
Result<QpAddress> address_of(std::span<const std::byte> metadata) {
  QpAddress address;
  if (metadata.size() < sizeof address) {
    return Error(Errc::protocol_error, fmt::format("a queue pair's address of {} bytes", metadata.size()));
  }
  // cairn-allow(memcpy): framing or metadata, never payload
  std::memcpy(&address, metadata.data(), sizeof address);
  return address;
}

std::string how_it_ended(const Moved& moved) {
  return moved.how == Moved::How::failed ? moved.error : "the peer has taken its queue pair down";
}

}  // namespace

UpgradingStream::UpgradingStream(Upgrades& upgrades, Role role, std::shared_ptr<UpgradeHistory> history,
                                 std::unique_ptr<tcp::TcpStream> tcp)
    : upgrades_(upgrades),
      role_(role),
      history_(std::move(history)),
      peer_(tcp->peer()),
      tcp_(std::move(tcp)),
      timer_(&on_timer, this) {}

UpgradingStream::~UpgradingStream() {
  upgrades_.loop().disarm(timer_);
  if (agreed_) (state_ == State::upgraded ? upgrades_.over_rdma() : upgrades_.over_tcp()).add(-1);
}

void UpgradingStream::start(stream::StreamEvents& events) {
  ASSERT(events_ == nullptr);
  events_ = &events;
  tcp_->start(tcp_events_);
}

// --- The handshake ---

void UpgradingStream::on_agreed(uint64_t features) {
  if ((features & kFeatureRdma) == 0) {
    if (is_client()) history_->impossible("the server offers no RDMA");
    return;
  }
  agreed_ = true;
  upgrades_.over_tcp().add(1);
  if (!is_client()) return;
  if (upgrades_.loop().now() >= history_->next_attempt()) return attempt();
  upgrades_.loop().arm(timer_, history_->next_attempt());
}

Result<void> UpgradingStream::on_control(const Header& header, std::span<const std::byte> metadata, bool last) {
  switch (header.kind) {
    case Kind::upgrade_offer:
      return on_offer(metadata);
    case Kind::upgrade_answer:
      return on_answer(header, metadata);
    case Kind::upgrade_switch:
      return on_switch(header, metadata, last);
    default:
      return wrong_moment("a message of another kind");
  }
}

void UpgradingStream::attempt() {
  ASSERT(is_client() && agreed_ && state_ == State::plain);
  if (upgrades_.group() == nullptr) return fall_back(upgrades_.why_closed());
  auto link = upgrades_.group()->prepare(role_, tcp_->local());
  if (!link) return fall_back(link.error().message());
  link_ = *std::move(link);
  rail_ = link_->rail();
  state_ = State::offered;
  const QpAddress mine = link_->local();
  (void)events_->send_control(Kind::upgrade_offer, 0, std::as_bytes(std::span(&mine, 1)));
}

void UpgradingStream::fall_back(std::string_view problem) {
  upgrades_.count_fallback(problem);
  stay_with_tcp(problem);
}

void UpgradingStream::stay_with_tcp(std::string_view problem) {
  state_ = State::plain;
  history_->failed(upgrades_.loop().now(), problem);
  upgrades_.loop().arm(timer_, history_->next_attempt());
}

Result<void> UpgradingStream::on_offer(std::span<const std::byte> metadata) {
  if (is_client() || !agreed_ || state_ != State::plain) return wrong_moment("an offer of RDMA");
  TRY(const QpAddress remote, address_of(metadata));
  broken_.clear();
  if (upgrades_.group() == nullptr) {
    refuse({Errc::unavailable, upgrades_.why_closed()});
    return {};
  }
  auto link = upgrades_.group()->prepare(role_, tcp_->local());
  if (!link) {
    refuse(link.error());
    return {};
  }
  rail_ = (*link)->rail();
  const QpAddress mine = (*link)->local();
  auto connected = (*link)->connect(remote, peer_);
  if (!connected) {
    if (connected.code() == Errc::protocol_error) return std::move(connected).error();
    refuse(connected.error());
    return {};
  }
  state_ = State::accepted;
  // Before the answer: once it has come there may be bytes.
  adopt(*std::move(connected));
  (void)events_->send_control(Kind::upgrade_answer, 0, std::as_bytes(std::span(&mine, 1)));
  return {};
}

void UpgradingStream::refuse(const Error& why) {
  upgrades_.count_fallback(why.message());
  history_->failed(upgrades_.loop().now(), why.message());
  (void)events_->send_control(Kind::upgrade_answer, static_cast<uint16_t>(why.code()), text_bytes(why.message()));
}

Result<void> UpgradingStream::on_answer(const Header& header, std::span<const std::byte> metadata) {
  if (!is_client() || state_ != State::offered) return wrong_moment("an answer about RDMA");
  const std::unique_ptr<PendingLink> link = std::move(link_);
  if (header.status != 0) {
    upgrades_.count_peers();
    stay_with_tcp("the server: " + text_of(metadata));
    return {};
  }
  TRY(const QpAddress remote, address_of(metadata));
  auto connected = link->connect(remote, peer_);
  if (!connected) {
    if (connected.code() == Errc::protocol_error) return std::move(connected).error();
    give_up(connected.error());
    return {};
  }
  state_ = State::proving;
  upgrades_.loop().arm_in(timer_, upgrades_.options().proof_timeout);
  adopt(*std::move(connected));
  move_proof();
  return {};
}

void UpgradingStream::give_up(const Error& why) {
  rdma_.reset();
  (void)events_->send_control(Kind::upgrade_switch, static_cast<uint16_t>(why.code()), text_bytes(why.message()));
  fall_back(why.message());
}

Result<void> UpgradingStream::on_switch(const Header& header, std::span<const std::byte> metadata, bool last) {
  if (header.status != 0) {
    if (is_client() || state_ != State::accepted) return wrong_moment("an upgrade given up");
    rdma_.reset();
    state_ = State::plain;
    upgrades_.count_peers();
    return {};
  }
  if (!last || !metadata.empty()) return Error(Errc::protocol_error, "the switch to RDMA isn't the last thing on TCP");
  if (is_client()) {
    if (state_ != State::leaving || !sends_over_rdma_) return wrong_moment("a switch to RDMA");
  } else {
    if (state_ != State::accepted) return wrong_moment("a switch to RDMA");
    if (rdma_ != nullptr && proof_sent_ != kProofBytes) return wrong_moment("a switch to RDMA");
    state_ = State::leaving;
    left_on_tcp_ = events_->send_control(Kind::upgrade_switch, 0, {});
  }
  receives_over_rdma_ = true;
  tcp_->set_receiving(false);
  if (rdma_ != nullptr) {
    rdma_->set_receiving(receiving_);
  } else {
    upgrades_.loop().arm_in(timer_, {});  // receive() tells that it is broken
  }
  when_both_left();
  return {};
}

void UpgradingStream::leave() {
  upgrades_.loop().disarm(timer_);
  left_on_tcp_ = events_->send_control(Kind::upgrade_switch, 0, {});
  if (left_on_tcp_ == 0) return;  // the connection is about to end
  state_ = State::leaving;
}

void UpgradingStream::when_both_left() {
  if (!sends_over_rdma_ || !receives_over_rdma_) return;
  state_ = State::upgraded;
  upgraded_at_ = upgrades_.loop().now();
  upgrades_.over_tcp().add(-1);
  upgrades_.over_rdma().add(1);
  history_->succeeded(rail_);
  rdma_->hold(tcp_->release());
  tcp_.reset();
}

// --- The proof ---

void UpgradingStream::adopt(std::unique_ptr<RdmaStream> link) {
  rdma_ = std::move(link);
  proof_received_ = proof_sent_ = 0;
  rdma_->start(rdma_events_);
}

void UpgradingStream::move_proof() {
  ASSERT(state_ == State::accepted || state_ == State::proving);
  if (is_client()) {
    if (send_proof() && receive_proof()) leave();
  } else if (receive_proof()) {
    (void)send_proof();
  }
}

bool UpgradingStream::send_proof() {
  while (proof_sent_ < kProofBytes) {
    iovec rest{the_proof.data() + proof_sent_, kProofBytes - proof_sent_};
    const Moved moved = rdma_->send({&rest, 1});
    if (moved.how == Moved::How::would_block) return false;
    if (moved.how != Moved::How::some) {
      link_failed(how_it_ended(moved));
      return false;
    }
    proof_sent_ += moved.bytes;
  }
  return true;
}

bool UpgradingStream::receive_proof() {
  while (proof_received_ < kProofBytes) {
    Proof room;
    iovec rest{room.data(), kProofBytes - proof_received_};
    const Moved moved = rdma_->receive({&rest, 1});
    if (moved.how == Moved::How::would_block) return false;
    if (moved.how != Moved::How::some) {
      link_failed(how_it_ended(moved));
      return false;
    }
    if (!std::equal(room.begin(), room.begin() + static_cast<ptrdiff_t>(moved.bytes),
                    the_proof.begin() + static_cast<ptrdiff_t>(proof_received_))) {
      link_failed("the peer sent something else than what shows that the way is open");
      return false;
    }
    proof_received_ += moved.bytes;
    // What follows belongs to the messages.
    if (proof_received_ == kProofBytes) rdma_->set_receiving(false);
  }
  return true;
}

void UpgradingStream::link_failed(std::string problem) {
  if (is_client()) return give_up({Errc::unavailable, fmt::format("{}: {}", rail_, problem)});
  // The client sees it, too, and gives up; or has said switch already.
  rdma_.reset();
  upgrades_.count_fallback(problem);
  history_->failed(upgrades_.loop().now(), problem);
  broken_ = std::move(problem);
}

// --- The stream ---

Moved UpgradingStream::receive(std::span<iovec> vectors) {
  if (!receives_over_rdma_) return tcp_->receive(vectors);
  if (rdma_ == nullptr) return {Moved::How::failed, 0, broken_};
  Moved moved = rdma_->receive(vectors);
  if (moved.how == Moved::How::failed && broken_.empty()) link_lost(moved.error);
  return moved;
}

Moved UpgradingStream::send(std::span<iovec> vectors) {
  if (sends_over_rdma_) return rdma_->send(vectors);
  if (state_ != State::leaving || left_on_tcp_ == 0) return tcp_->send(vectors);
  // Up to the switch and no further.
  size_t bytes = 0;
  size_t n = 0;
  while (n < vectors.size() && bytes < left_on_tcp_) {
    vectors[n].iov_len = std::min(vectors[n].iov_len, left_on_tcp_ - bytes);
    bytes += vectors[n++].iov_len;
  }
  Moved moved = tcp_->send(vectors.first(n));
  if (moved.how != Moved::How::some) return moved;
  left_on_tcp_ -= moved.bytes;
  if (left_on_tcp_ == 0 && rdma_ != nullptr) {
    sends_over_rdma_ = true;
    when_both_left();
  }
  return moved;
}

void UpgradingStream::link_lost(const std::string& problem) {
  broken_ = problem;
  upgrades_.count_broken();
  const Time now = upgrades_.loop().now();
  history_->broke(now, state_ == State::upgraded ? now - upgraded_at_ : Duration{}, problem);
}

void UpgradingStream::set_receiving(bool wanted) {
  receiving_ = wanted;
  if (!receives_over_rdma_) return tcp_->set_receiving(wanted);
  if (rdma_ != nullptr) rdma_->set_receiving(wanted);
}

void UpgradingStream::want_flush() {
  if (sends_over_rdma_) return rdma_->want_flush();
  tcp_->want_flush();
}

void UpgradingStream::shutdown_send() {
  if (sends_over_rdma_) return rdma_->shutdown_send();
  tcp_->shutdown_send();
}

stream::OneSided* UpgradingStream::one_sided() {
  const bool reachable = is_client() ? state_ == State::leaving || state_ == State::upgraded : receives_over_rdma_;
  return reachable && rdma_ != nullptr ? rdma_->one_sided() : nullptr;
}

std::unique_ptr<DetachedEndpoint> UpgradingStream::detach() {
  return state_ == State::plain ? tcp_->detach() : nullptr;
}

// --- What the two streams tell ---

void UpgradingStream::TcpEvents::on_sendable() {
  if (!self.sends_over_rdma_) self.events_->on_sendable();
}

void UpgradingStream::on_rdma_receivable() {
  if (state_ == State::accepted || state_ == State::proving) return move_proof();
  if (receives_over_rdma_) events_->on_receivable();
}

void UpgradingStream::on_rdma_sendable() {
  if (state_ == State::accepted || state_ == State::proving) return move_proof();
  if (sends_over_rdma_) events_->on_sendable();
}

void UpgradingStream::timed_out() {
  switch (state_) {
    case State::plain:
      return attempt();
    case State::proving:
      return give_up(
          {Errc::unavailable, fmt::format("{} through {}; look at the way between the two (RoCEv2: UDP port 4791, MTU)",
                                          kNoProof, rail_)});
    case State::leaving:
      return events_->on_receivable();
    case State::offered:
    case State::upgraded:
    case State::accepted:
      ASSERT(false);
  }
}

}  // namespace cairn::srpc::rdma
