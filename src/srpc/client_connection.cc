#include "srpc/client_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "srpc/call.h"

namespace cairn::srpc::detail {
namespace {

// What is left until `deadline`, as it travels: rounded up, so that a call with time left never says "none".
uint32_t remaining_us(Time now, Time deadline) {
  if (deadline == Time::never()) return 0;
  const int64_t us = ((deadline - now).ns + 999) / 1000;
  return static_cast<uint32_t>(std::clamp<int64_t>(us, 1, UINT32_MAX));
}

std::string text_of(std::span<const std::byte> metadata) {
  return std::string(reinterpret_cast<const char*>(metadata.data()), metadata.size());
}

}  // namespace

ClientConnection::ClientConnection(Channel& channel, std::unique_ptr<Endpoint> endpoint)
    : channel_(channel),
      loop_(channel.loop()),
      endpoint_(std::move(endpoint)),
      hello_event_(loop_),
      closed_event_(loop_),
      last_sent_(loop_.now()),
      timer_(&on_timer, this) {}

ClientConnection::~ClientConnection() {
  loop_.disarm(timer_);
  ASSERT(std::ranges::none_of(slots_, [](const Slot& slot) { return slot.call != nullptr; }));
}

Task<Result<void>> ClientConnection::hello(CancelToken token) {
  const ChannelOptions& options = channel_.options_;
  hello_.version_min = options.protocol.version_min;
  hello_.version_max = options.protocol.version_max;
  hello_.poll_group = channel_.wanted_poll_group();
  hello_.keepalive_ms = static_cast<uint32_t>(options.keepalive.ms());
  hello_.features = options.protocol.features | endpoint_->features();
  hello_.client_id = options.client_id.bytes;
  hello_.max_data = options.max_data;
  hello_.max_metadata = static_cast<uint16_t>(kMaxMetadata);
  if (options.keys != nullptr) {
    hello_.auth = static_cast<uint8_t>(Auth::hmac_sha256);
    loop_.rng().fill(std::as_writable_bytes(std::span(hello_.nonce)));
  }
  agreed_.version = options.protocol.version_min;  // until there is an agreement; so every server can read it
  endpoint_->limit_version(options.protocol.version_max);
  endpoint_->start(*this);
  Header header;
  header.kind = Kind::hello;
  header.version = agreed_.version;
  endpoint_->send(header, hello_bytes(), {});
  CO_TRY(co_await hello_event_.wait(token));
  if (!hello_done_) co_return close_.to_error();
  loop_.arm_in(timer_, options.keepalive);
  co_return Result<void>();
}

std::span<const std::byte> ClientConnection::hello_bytes() const {
  const auto bytes = std::as_bytes(std::span(&hello_, 1));
  return channel_.options_.keys == nullptr ? bytes.first(kOpenHelloBytes) : bytes;
}

bool ClientConnection::can_send(PendingCall& call) const {
  if (draining_ || closing_ || credits_ == 0 || in_flight_ >= slots_.size()) return false;
  // The first call may be larger than the window: else it would wait for ever.
  return bytes_in_flight_ == 0 || bytes_in_flight_ + call.request_data().size() <= agreed_.byte_credits;
}

void ClientConnection::send(PendingCall& call) {
  ASSERT(can_send(call));
  if (call.request_data().size() > agreed_.max_data) {
    return call.finish(Errc::too_large, fmt::format("{} bytes of data, {} takes at most {}", call.request_data().size(),
                                                    endpoint_->peer(), agreed_.max_data.get()));
  }
  if (call.manner_ == PendingCall::Manner::notice) return send_notice(call);
  const uint32_t index = free_slots_.back();
  free_slots_.pop_back();
  Slot& slot = slots_[index];
  ASSERT(!slot.in_use);
  slot.in_use = true;
  slot.call = &call;
  slot.data_bytes = static_cast<uint32_t>(call.request_data().size());
  ++slot.uses;
  call.slot_ = index;
  call.state_ = PendingCall::State::sent;
  --credits_;
  ++in_flight_;
  bytes_in_flight_ += slot.data_bytes;
  last_sent_ = loop_.now();

  std::optional<Sequence> sequence;
  if (call.manner_ == PendingCall::Manner::sequenced && (agreed_.features & kFeatureSequences) != 0) {
    sequence = channel_.sequencer_.stamp(call.sequence_, agreed_);
  }
  // One that may be needed again keeps its payload, by reference.
  const bool keep = call.may_be_repeated();
  send_request(Kind::request, slot.uses << kSlotBits | index, call, sequence,
               keep ? mem::BufChain(call.request_data()) : std::move(call.request_data()));
}

void ClientConnection::send_notice(PendingCall& call) {
  if ((agreed_.features & kFeatureNotices) == 0) {
    return call.finish(Errc::unsupported, fmt::format("{} takes no notices", endpoint_->peer()));
  }
  --credits_;
  last_sent_ = loop_.now();
  // Not one that a call could have.
  send_request(Kind::notice, kNoticeBit | ++notices_, call, std::nullopt, {});
  call.finish(Errc::ok, {});
}

void ClientConnection::send_request(Kind kind, uint64_t id, PendingCall& call, const std::optional<Sequence>& sequence,
                                    mem::BufChain&& data) {
  Header header;
  header.kind = kind;
  header.version = agreed_.version;
  header.method = call.method_;
  header.time_us = remaining_us(loop_.now(), call.options_.deadline);
  header.request_id = id;
  header.map_epoch = call.options_.map_epoch;
  std::byte metadata[kMaxMetadata];
  const Trace trace = (agreed_.features & kFeatureTrace) != 0 ? call.options_.trace : Trace();
  const size_t front = encode_extensions({sequence, trace}, header, metadata);
  const size_t size = call.request_metadata_bytes();
  ASSERT(front + size <= sizeof metadata);
  call.encode_request({metadata + front, size});
  // Where the server writes there by itself it is given away: the call may be sent again while a server that is lost
  // still writes.
  endpoint_->send(header, {metadata, front + size}, std::move(data),
                  endpoint_->caps().one_sided ? std::exchange(call.options_.reply_memory, {}) : mem::BufChain());
}

void ClientConnection::abandon(PendingCall& call, bool tell_peer) {
  Slot& slot = slots_[call.slot_];
  ASSERT(slot.in_use && slot.call == &call);
  slot.call = nullptr;
  if (tell_peer) send_control(Kind::cancel, slot.uses << kSlotBits | call.slot_);
}

void ClientConnection::release_slot(uint32_t index) {
  Slot& slot = slots_[index];
  slot.in_use = false;
  slot.call = nullptr;
  bytes_in_flight_ -= slot.data_bytes;
  --in_flight_;
  free_slots_.push_back(index);
}

void ClientConnection::send_control(Kind kind, uint64_t request_id) {
  Header header;
  header.kind = kind;
  header.version = agreed_.version;
  header.request_id = request_id;
  last_sent_ = loop_.now();
  endpoint_->send(header, {}, {});
}

void ClientConnection::on_message(Incoming& message) {
  if (closing_) return;
  const Header& header = message.header;
  if (!hello_done_) {
    if (header.kind == Kind::challenge) return on_challenge(message);
    if (header.kind == Kind::hello_reply) return on_hello_reply(message);
    if (header.kind == Kind::goodbye) return on_goodbye(message);
    return broken(CloseReason::bad_sequence, "the server spoke before its hello");
  }
  add_credits(header.credits);
  if (closing_) return;
  if (header.map_epoch != 0) channel_.peer_map_epoch_ = header.map_epoch;
  switch (header.kind) {
    case Kind::reply:
      on_reply(message);
      break;
    case Kind::credit:
      break;
    case Kind::pong:
      on_pong(header.request_id);
      break;
    case Kind::ping:
      send_control(Kind::pong, header.request_id);
      break;
    case Kind::goodbye:
      on_goodbye(message);
      break;
    case Kind::push:
      channel_.on_pushed(header.method, message.metadata);
      break;
    case Kind::hello:
    case Kind::hello_reply:
    case Kind::request:
    case Kind::cancel:
    case Kind::notice:
    case Kind::challenge:
    case Kind::proof:
    case Kind::upgrade_offer:
    case Kind::upgrade_answer:
    case Kind::upgrade_switch:
      return broken(CloseReason::bad_sequence, fmt::format("a server sent a message of kind {}", int(header.kind)));
  }
  if (!closing_) channel_.pump();
}

void ClientConnection::on_challenge(const Incoming& message) {
  const KeyRing* keys = channel_.options_.keys;
  if (keys == nullptr) return distrust("the server asks for the cluster key, and this side has none");
  if (session_) return broken(CloseReason::bad_sequence, "the server asked for the key twice");
  if (message.metadata.size() < sizeof(ChallengeBody)) {
    return broken(CloseReason::bad_sequence, "the server's challenge is too short");
  }
  session_.emplace(keys->proving(), handshake_transcript(hello_bytes(), message.metadata));
  const ProofBody body{.proof = session_->client_proof()};
  Header header;
  header.kind = Kind::proof;
  header.version = agreed_.version;
  endpoint_->send(header, std::as_bytes(std::span(&body, 1)), {});
}

bool ClientConnection::is_trusted(const Incoming& hello_reply) {
  if (channel_.options_.keys == nullptr) return true;
  const std::span<const std::byte> bytes = hello_reply.metadata;
  if (!session_) {
    distrust("the server doesn't ask for the cluster key: it has none, or is an impostor");
  } else if (bytes.size() < sizeof(HelloReplyBody)) {
    distrust("the server proves nothing");
  } else if (!equal_secret(session_->server_proof(bytes),
                           bytes.subspan(offsetof(HelloReplyBody, proof), sizeof(HelloReplyBody::proof)))) {
    distrust("the server's proof is wrong: it doesn't know the cluster key, or what it said was altered on its way");
  } else {
    session_.reset();
    return true;
  }
  return false;
}

void ClientConnection::on_hello_reply(const Incoming& message) {
  if (!is_trusted(message)) return;
  if (message.metadata.size() < kOpenHelloReplyBytes) {
    return broken(CloseReason::bad_sequence, "the server's hello is too short");
  }
  HelloReplyBody said;
  // cairn-allow(memcpy): framing or metadata, never payload
  std::memcpy(&said, message.metadata.data(), std::min(message.metadata.size(), sizeof said));
  const Protocol& own = channel_.options_.protocol;
  if (said.version < own.version_min || said.version > own.version_max) {
    return broken(CloseReason::bad_version, fmt::format("the server chose version {}", said.version));
  }
  if (const uint64_t unknown = said.features & ~hello_.features; unknown != 0) {
    return broken(CloseReason::bad_sequence,
                  fmt::format("the server chose features {:#x}, which this side doesn't have", unknown));
  }
  if (said.credits == 0 || said.max_calls == 0 || said.byte_credits == 0) {
    return broken(CloseReason::bad_sequence, "the server's hello gives no credits");
  }
  agreed_ = said;
  const uint16_t wanted = hello_.poll_group;
  if (wanted != kAnyPollGroup && agreed_.poll_group != wanted) {
    return broken(CloseReason::no_poll_group, fmt::format("asked for poll group {} and got {} of {}", wanted,
                                                          agreed_.poll_group.get(), agreed_.poll_groups.get()));
  }
  endpoint_->limit_data(channel_.options_.max_data);
  endpoint_->limit_version(agreed_.version);
  credits_ = agreed_.credits;
  slots_.resize(std::min<size_t>(agreed_.max_calls, size_t{1} << kSlotBits));
  for (size_t i = slots_.size(); i > 0; --i) free_slots_.push_back(static_cast<uint32_t>(i - 1));
  hello_done_ = true;
  endpoint_->on_agreed(agreed_.version, agreed_.features);
  hello_event_.set();
}

ClientConnection::Slot* ClientConnection::slot_of(const Header& header) {
  const auto index = static_cast<uint32_t>(header.request_id & ((1U << kSlotBits) - 1));
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  return slot.in_use && slot.uses == header.request_id >> kSlotBits ? &slot : nullptr;
}

mem::BufChain ClientConnection::memory_for(const Header& header) {
  Slot* slot = header.kind == Kind::reply ? slot_of(header) : nullptr;
  if (slot == nullptr || slot->call == nullptr) return {};
  mem::BufChain& memory = slot->call->options_.reply_memory;
  if (memory.size() < header.data_bytes) return {};
  // One that may be needed again keeps it, as it keeps its payload.
  const bool keep = slot->call->may_be_repeated();
  mem::BufChain given = keep ? mem::BufChain(memory) : std::exchange(memory, {});
  return given.split_front(header.data_bytes);
}

void ClientConnection::on_reply(Incoming& message) {
  const Header& header = message.header;
  Slot* slot = slot_of(header);
  if (slot == nullptr) {
    return broken(CloseReason::bad_sequence,
                  fmt::format("reply to a call {:x} that isn't under way", header.request_id));
  }
  PendingCall* call = slot->call;
  release_slot(static_cast<uint32_t>(slot - slots_.data()));
  if (call == nullptr) {
    channel_.metrics_.late_replies.add();
  } else if (draining_ && header.status == static_cast<uint16_t>(Errc::unavailable) &&
             call->manner_ == PendingCall::Manner::repeatable && channel_.repeat(*call)) {
    // It crossed with the goodbye.
  } else if (message.damaged) {
    call->finish(Errc::corrupt, "the reply's payload was damaged on its way");
  } else if (header.status == 0) {
    if (call->decode_reply(message.metadata, std::move(message.data))) {
      call->finish(Errc::ok, {});
    } else {
      call->finish(Errc::protocol_error,
                   fmt::format("the reply's metadata of {} bytes is too short", message.metadata.size()));
    }
  } else {
    if (call->options_.detail != nullptr) {
      call->options_.detail->retry_after = microseconds(header.time_us);
      call->options_.detail->data = std::move(message.data);
    }
    call->finish(errc_from_wire(header.status), text_of(message.metadata));
  }
  close_when_idle();
}

Task<Result<void>> ClientConnection::ping(PendingPing& ping, CancelToken token) {
  if (closing_) co_return Error(Errc::closed, "the connection is about to end");
  ping.id = next_ping_++;
  pings_.push_back(&ping);
  send_control(Kind::ping, ping.id);
  Result<void> waited = co_await ping.ended.wait(token);
  // From here on `this` may be gone, unless the ping is still known to it.
  if (ping.answered) co_return Result<void>();
  if (ping.lost) co_return Error(Errc::closed, "the connection was lost before the answer");
  std::erase(pings_, &ping);
  co_return waited;
}

void ClientConnection::on_pong(uint64_t id) {
  const auto found = std::ranges::find(pings_, id, &PendingPing::id);
  if (found == pings_.end()) return;
  (*found)->answered = true;
  (*found)->ended.set();
  pings_.erase(found);
}

void ClientConnection::on_goodbye(const Incoming& message) {
  const CloseReason reason = close_reason_from_wire(message.header.status);
  if (!hello_done_) {
    closing_ = true;
    close_ = {reason, text_of(message.metadata)};
    endpoint_->close({CloseReason::done, ""});
    return;
  }
  // Calls under way are still answered; new ones wait for the next connection.
  draining_ = true;
  close_ = {reason, text_of(message.metadata)};
  close_when_idle();
}

void ClientConnection::close_when_idle() {
  if (!draining_ || closing_ || in_flight_ > 0) return;
  closing_ = true;
  endpoint_->close({CloseReason::done, ""});
}

void ClientConnection::add_credits(uint16_t credits) {
  credits_ += credits;
  if (credits_ > agreed_.credits) broken(CloseReason::bad_sequence, "the server gave more credits than it announced");
}

void ClientConnection::broken(CloseReason reason, std::string text) { close({reason, std::move(text)}); }

void ClientConnection::distrust(std::string cause) {
  if (closing_) return;
  say_goodbye(CloseReason::not_authenticated, "");
  end({CloseReason::not_authenticated, std::move(cause)});
}

void ClientConnection::close(Close why) {
  if (closing_) return;
  say_goodbye(why.reason, why.text);
  end(std::move(why));
}

void ClientConnection::say_goodbye(CloseReason reason, std::string_view text) {
  Header header;
  header.kind = Kind::goodbye;
  header.version = agreed_.version;
  header.status = static_cast<uint16_t>(reason);
  endpoint_->send(header, std::as_bytes(std::span(text.substr(0, kMaxMetadata))), {});
}

void ClientConnection::end(Close why) {
  closing_ = true;
  close_ = why;
  endpoint_->close(std::move(why));
}

void ClientConnection::on_closed(const Close& close) {
  // What the peer or we said before tells more than the end of the stream.
  if (close_.reason == CloseReason::none) close_ = close;
  closing_ = true;
  loop_.disarm(timer_);
  const Error error = close_.to_error();
  for (Slot& slot : slots_) {
    if (!slot.in_use) continue;
    PendingCall* call = std::exchange(slot.call, nullptr);
    if (call != nullptr && !channel_.repeat(*call)) call->finish(error.code(), error.message());
  }
  for (PendingPing* ping : std::exchange(pings_, {})) {
    ping->lost = true;
    ping->ended.set();
  }
  hello_event_.set();
  closed_event_.set();
}

void ClientConnection::on_timer(void* self) { static_cast<ClientConnection*>(self)->keep_alive(); }

void ClientConnection::keep_alive() {
  const ChannelOptions& options = channel_.options_;
  const Time now = loop_.now();
  const Time last_received = endpoint_->status().last_received;
  if (now - last_received >= options.silence_timeout) {
    return close({CloseReason::idle_timeout,
                  fmt::format("nothing came from {} for {} s", endpoint_->peer(), options.silence_timeout.seconds())});
  }
  // A ping also when only the peer is silent: it makes it speak.
  if (now - last_sent_ >= options.keepalive || now - last_received >= options.keepalive) {
    send_control(Kind::ping, 0);
  }
  loop_.arm_in(timer_, options.keepalive);
}

}  // namespace cairn::srpc::detail
