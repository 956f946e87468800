#include "srpc/server_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "srpc/server_metrics.h"

namespace cairn::srpc {
namespace {

// The same whatever was wrong. It is meant for the operator who finds it in the log of an honest client.
constexpr std::string_view kTurnedAway = "give both sides the same cluster key, or none";

// The fields that this version knows; those that the peer doesn't are zero.
template <typename Body>
Body body_of(std::span<const std::byte> metadata) {
  Body body;
  // cairn-allow(memcpy): framing or metadata, never payload
  std::memcpy(&body, metadata.data(), std::min(metadata.size(), sizeof body));
  return body;
}

}  // namespace

ServerConnection::ServerConnection(Server& server, uint64_t number, std::unique_ptr<Endpoint> endpoint)
    : server_(server),
      loop_(server.loop_),
      number_(number),
      endpoint_(std::move(endpoint)),
      push_target_(new PushTarget(*this)),
      began_(loop_.now()),
      client_credits_(server.options_.credits),
      timer_(&on_timer, this) {
  server_.metrics_->open.add(1);
}

ServerConnection::~ServerConnection() {
  push_target_->connection_ = nullptr;
  ASSERT(calls_.size() == 0);
  loop_.disarm(timer_);
  server_.metrics_->open.add(-1);
}

void ServerConnection::start() {
  arm_timer();
  endpoint_->limit_version(server_.options_.protocol.version_max);
  endpoint_->start(*this);
}

void ServerConnection::start_placed(const Introduction& introduction) {
  start();
  if (state_ == State::hello) welcome(introduction);
}

void ServerConnection::on_message(Incoming& message) {
  if (state_ == State::closing || state_ == State::closed) return;
  const Header& header = message.header;
  if (state_ == State::hello) {
    if (header.kind == Kind::hello) return on_hello(message);
    return close({CloseReason::bad_sequence, "the first message isn't a hello"});
  }
  if (state_ == State::challenged && header.kind != Kind::goodbye) {
    if (header.kind == Kind::proof) return on_proof(message);
    return close({CloseReason::bad_sequence, "the second message isn't a proof"});
  }
  switch (header.kind) {
    case Kind::request:
      return on_request(message);
    case Kind::notice:
      return on_notice(message);
    case Kind::cancel:
      return on_cancel(header.request_id);
    case Kind::ping: {
      Header pong;
      pong.kind = Kind::pong;
      pong.request_id = header.request_id;
      return send(pong, {}, {});
    }
    case Kind::pong:
      return;
    case Kind::goodbye:
      state_ = State::closing;
      close_ = {CloseReason::done, ""};
      return endpoint_->close({CloseReason::done, ""});
    case Kind::hello:
    case Kind::hello_reply:
    case Kind::reply:
    case Kind::credit:
    case Kind::push:
    case Kind::challenge:
    case Kind::proof:
    case Kind::upgrade_offer:
    case Kind::upgrade_answer:
    case Kind::upgrade_switch:
      return close({CloseReason::bad_sequence, fmt::format("a client sent a message of kind {}", int(header.kind))});
  }
}

void ServerConnection::on_hello(const Incoming& message) {
  const std::span<const std::byte> bytes = message.metadata;
  if (bytes.size() < kOpenHelloBytes) {
    return close({CloseReason::bad_sequence, fmt::format("a hello of {} bytes", bytes.size())});
  }
  const auto hello = body_of<HelloBody>(bytes);
  const auto wanted = static_cast<uint8_t>(server_.options_.keys == nullptr ? Auth::none : Auth::hmac_sha256);
  if (hello.auth != wanted) {
    return turn_away(wanted == 0       ? "the client has a key, this server has none"
                     : hello.auth == 0 ? "the client has no key"
                                       : fmt::format("the client wants proofs of kind {}", hello.auth));
  }
  if (server_.options_.keys == nullptr) return take({hello, std::nullopt});
  if (bytes.size() < sizeof hello) return turn_away(fmt::format("a hello with a key, of {} bytes", bytes.size()));
  challenge(hello, bytes);
}

void ServerConnection::challenge(const HelloBody& hello, std::span<const std::byte> hello_bytes) {
  ChallengeBody body;
  loop_.rng().fill(std::as_writable_bytes(std::span(body.nonce)));
  const auto body_bytes = std::as_bytes(std::span(&body, 1));
  hello_ = hello;
  transcript_ = handshake_transcript(hello_bytes, body_bytes);
  state_ = State::challenged;
  Header header;
  header.kind = Kind::challenge;
  send(header, body_bytes, {});
}

void ServerConnection::on_proof(const Incoming& message) {
  if (message.metadata.size() < sizeof(ProofBody)) {
    return turn_away(fmt::format("a proof of {} bytes", message.metadata.size()));
  }
  const auto session = recognise(*server_.options_.keys, transcript_, body_of<ProofBody>(message.metadata).proof);
  if (!session) return turn_away("the client's proof is wrong: it has another key");
  take({hello_, session});
}

void ServerConnection::take(const Introduction& introduction) {
  const HelloBody& hello = introduction.hello;
  const ServerOptions& options = server_.options_;
  const Protocol& own = options.protocol;
  if (hello.version_min > own.version_max || hello.version_max < own.version_min) {
    return close({CloseReason::bad_version,
                  fmt::format("the client speaks versions {} to {}, this server {} to {}", hello.version_min,
                              hello.version_max, own.version_min, own.version_max)});
  }
  Placement* const placement = server_.placement_;
  uint16_t wanted = hello.poll_group;
  if (wanted == kAnyPollGroup && placement != nullptr) wanted = placement->choose(options.poll_group);
  if (wanted == kAnyPollGroup) wanted = options.poll_group;
  if (wanted == options.poll_group) return serve_or_refuse(introduction);
  if (wanted >= options.poll_groups) {
    return close({CloseReason::no_poll_group,
                  fmt::format("poll group {} doesn't exist: there are {}", wanted, options.poll_groups)});
  }
  auto detached = placement == nullptr ? nullptr : endpoint_->detach();
  if (detached == nullptr) {
    // Nobody would notice.
    if (hello.poll_group == kAnyPollGroup) return serve_or_refuse(introduction);
    return close({CloseReason::no_poll_group,
                  fmt::format("poll group {} can't be reached by way of poll group {}", wanted, options.poll_group)});
  }
  server_.metrics_->placed.add();
  placement->place(wanted, std::move(detached), introduction);
  state_ = State::closed;
  close_ = {CloseReason::none, "placed"};
  remove_if_done();
}

void ServerConnection::serve_or_refuse(const Introduction& introduction) {
  if (!server_.draining_) return welcome(introduction);
  close({CloseReason::refused, server_.why_refused()});
}

void ServerConnection::welcome(const Introduction& introduction) {
  const HelloBody& hello = introduction.hello;
  const ServerOptions& options = server_.options_;
  state_ = State::open;
  served_ = true;
  server_.count_served(1);
  endpoint_->limit_data(options.max_data);
  arm_timer();
  version_ = std::min(hello.version_max, options.protocol.version_max);
  endpoint_->limit_version(version_);
  features_ = hello.features & (options.protocol.features | endpoint_->features());
  // Who comes back must be able to tell whether he comes back to the same life of the server.
  if (options.server_id.is_zero()) features_ &= ~uint64_t{kFeatureSequences};
  client_id_.bytes = hello.client_id;
  HelloReplyBody body;
  body.version = version_;
  body.poll_groups = options.poll_groups;
  body.poll_group = options.poll_group;
  body.credits = options.credits;
  body.features = features_;
  body.byte_credits = options.byte_credits;
  body.server_id = options.server_id.bytes;
  body.max_calls = options.max_calls;
  body.max_data = options.max_data;
  body.max_metadata = static_cast<uint16_t>(kMaxMetadata);
  body.idle_timeout_ms = static_cast<uint32_t>(options.idle_timeout.ms());
  auto bytes = std::as_bytes(std::span(&body, 1));
  if (introduction.session) {
    body.proof = introduction.session->server_proof(bytes);
  } else {
    bytes = bytes.first(kOpenHelloReplyBytes);
  }
  Header header;
  header.kind = Kind::hello_reply;
  send(header, bytes, {});
  endpoint_->on_agreed(version_, features_);
}

bool ServerConnection::within_credit(const Header& header) {
  const ServerOptions& options = server_.options_;
  if (client_credits_ == 0) {
    close({CloseReason::over_credit, "a request without a credit for it"});
  } else if (header.kind == Kind::request && calls_.size() - notices_running_ >= options.max_calls) {
    close({CloseReason::over_credit, fmt::format("more than {} calls at a time", options.max_calls)});
  } else if (header.data_bytes > options.max_data) {
    close({CloseReason::too_large,
           fmt::format("{} bytes of data, the limit is {}", header.data_bytes, options.max_data)});
  } else if (bytes_running_ > 0 && bytes_running_ + header.data_bytes > options.byte_credits) {
    close({CloseReason::over_credit, fmt::format("more than {} bytes of payload at a time", options.byte_credits)});
  } else if (calls_.find(header.request_id) != nullptr) {
    close({CloseReason::bad_sequence, fmt::format("request id {:x} is already under way", header.request_id)});
  } else {
    return true;
  }
  return false;
}

void ServerConnection::on_request(Incoming& message) {
  const Header& header = message.header;
  if (!within_credit(header)) return;
  --client_credits_;
  ++owed_credits_;  // the slot is free: what the message said is with its handler now
  const auto extensions = extensions_of(message);
  if (!extensions) return;
  MethodEntry* method = server_.methods_.find(header.method);
  if (method == nullptr) {
    server_.metrics_->unknown_method.add();
    reject(header, Error(Errc::unsupported, fmt::format("this server has no method {:#06x}", header.method.value)), {});
  } else if (extensions->sequence && executed_before(header, *extensions->sequence, *method)) {
    if (state_ != State::open) return;
  } else if (message.damaged) {
    reject(header, Error(Errc::corrupt, "the request's payload was damaged on its way"), {});
  } else if (server_.draining_) {
    reject(header, Error(Errc::unavailable, "the server is stopping"), {});
  } else if (header.data_bytes > method->options.max_data) {
    reject(header,
           Error(Errc::too_large, fmt::format("{}: {} bytes of data, the limit is {}", method->name, header.data_bytes,
                                              method->options.max_data)),
           {});
  } else if (message.no_memory) {
    // As long again as it has waited in vain.
    refuse_busy(header, *method, "no memory for its payload",
                std::clamp(loop_.now() - message.arrived, method->options.retry_after, seconds(1)));
  } else if (method->running >= method->options.max_concurrent) {
    refuse_busy(header, *method, fmt::format("{} calls of {} run already", method->running, method->name),
                method->retry_after(method->options.max_concurrent));
  } else if (server_.is_busy()) {
    refuse_busy(header, *method, fmt::format("{} calls run already", server_.calls_running_),
                method->retry_after(server_.options_.max_running));
  } else {
    start_call(message, *method, *extensions);
  }
  send_owed_credits();
}

void ServerConnection::refuse_busy(const Header& header, MethodEntry& method, std::string why, Duration retry_after) {
  method.busy.add();
  method.calls.add();
  method.errors.add();
  reject(header, Error(Errc::busy, std::move(why)), retry_after);
}

std::optional<Extensions> ServerConnection::extensions_of(Incoming& message) {
  const uint8_t there = message.header.extensions;
  const auto without = [&](uint8_t extension, uint64_t feature) {
    return (there & extension) != 0 && (features_ & feature) == 0;
  };
  if (without(kExtensionSequence, kFeatureSequences) || without(kExtensionTrace, kFeatureTrace)) {
    close({CloseReason::bad_sequence, fmt::format("extensions {:#x}, which were not agreed", there)});
    return std::nullopt;
  }
  auto extensions = take_extensions(message.header, message.metadata);
  if (!extensions) {
    close({CloseReason::bad_header, extensions.error().message()});
    return std::nullopt;
  }
  return *extensions;
}

bool ServerConnection::executed_before(const Header& header, const Sequence& sequence, MethodEntry& method) {
  SequenceTable& table = server_.sequences_;
  bool refused = false;
  if (sequences_ == nullptr) {
    sequences_ = table.join(sequence, began_, refused);
    if (sequences_ == nullptr && !refused) {
      reject(header, Error(Errc::busy, "too many clients make calls that are executed once"),
             method.options.retry_after);
      return true;
    }
  } else if (sequences_->id() != sequence.channel) {
    close({CloseReason::bad_sequence, "calls of two channels on one connection"});
    return true;
  }
  SequenceTable::Record* record = refused ? nullptr : table.find(*sequences_, sequence, refused);
  if (refused) {
    table.count_refused();
    reject(header, Error(Errc::closed, "the server has forgotten whether it executed this call; the effect is unknown"),
           {});
    return true;
  }
  if (record == nullptr) return false;
  if (record->method != header.method) {
    reject(header, Error(Errc::invalid_argument, fmt::format("call {} was one of another method", sequence.number)),
           {});
  } else if (record->running != nullptr) {
    auto* call = new ServerCall(*this, method, header, {});
    add_call(*call, header);
    call->wait_for(*record);
  } else {
    const SequenceTable::Answer& answer = record->answer;
    Header reply;
    reply.kind = Kind::reply;
    reply.request_id = header.request_id;
    reply.method = header.method;
    reply.status = answer.status;
    reply.time_us = answer.time_us;
    send(reply, answer.metadata, mem::BufChain(answer.data));
  }
  return true;
}

void ServerConnection::add_call(ServerCall& call, const Header& header) {
  calls_.insert(call);
  bytes_running_ += header.data_bytes;
  ++server_.calls_running_;
  server_.metrics_->running.add(1);
}

void ServerConnection::start_call(Incoming& message, MethodEntry& method, const Extensions& extensions) {
  auto* call = new ServerCall(*this, method, message.header, extensions.trace);
  add_call(*call, message.header);
  if (extensions.sequence) {
    call->keep_answer(server_.sequences_.begin(*sequences_, extensions.sequence->number, method.id, *call));
  }
  call->start(message);
}

// Its credit comes back when it was served: as nobody waits for an answer, that is what bounds how many there are.
void ServerConnection::on_notice(Incoming& message) {
  const Header& header = message.header;
  if ((features_ & kFeatureNotices) == 0) return close({CloseReason::bad_sequence, "a notice, which was not agreed"});
  if (!within_credit(header)) return;
  --client_credits_;
  const auto extensions = extensions_of(message);
  if (!extensions) return;
  MethodEntry* method = server_.methods_.find(header.method);
  ++notices_running_;
  if (method != nullptr && !server_.draining_ && !server_.is_busy() &&
      method->running < method->options.max_concurrent) {
    return start_call(message, *method, *extensions);
  }
  if (method == nullptr) {
    server_.metrics_->unknown_method.add();
  } else if (!server_.draining_) {
    method->busy.add();
  }
  on_notice_done();
}

void ServerConnection::on_notice_done() {
  --notices_running_;
  ++owed_credits_;
  send_owed_credits();
}

Result<void> PushTarget::push(MethodId method, std::span<const std::byte> metadata) {
  if (connection_ == nullptr) return Error(Errc::closed, "the connection has ended");
  return connection_->push(method, metadata);
}

Result<void> ServerConnection::push(MethodId method, std::span<const std::byte> metadata) {
  if (state_ != State::open) return Error(Errc::closed, "the connection has ended");
  if ((features_ & kFeaturePush) == 0) return Error(Errc::unsupported, peer() + " takes no pushed messages");
  if (paused_) return Error(Errc::busy, peer() + " doesn't take what it is sent");
  Header header;
  header.kind = Kind::push;
  header.method = method;
  server_.metrics_->pushes.add();
  send(header, metadata, {});
  return {};
}

void ServerConnection::reject(const Header& request, const Error& error, Duration retry_after) {
  Header header;
  header.kind = Kind::reply;
  header.request_id = request.request_id;
  header.method = request.method;
  header.status = static_cast<uint16_t>(error.code());
  header.time_us = static_cast<uint32_t>(retry_after.us());
  const std::string_view text = std::string_view(error.message()).substr(0, kMaxMetadata);
  send(header, std::as_bytes(std::span(text)), {});
}

void ServerConnection::on_cancel(uint64_t request_id) {
  // One that isn't there was answered while the cancel was on its way.
  if (ServerCall* call = calls_.find(request_id)) call->cancel(Errc::cancelled);
}

void ServerConnection::send(Header header, std::span<const std::byte> metadata, mem::BufChain&& data) {
  if (state_ == State::closed || state_ == State::closing) return;
  header.version = version_;
  if (state_ == State::open) header.map_epoch = server_.map_epoch_;
  header.credits = static_cast<uint16_t>(owed_credits_);
  client_credits_ += owed_credits_;
  owed_credits_ = 0;
  ASSERT(client_credits_ <= server_.options_.credits);
  endpoint_->send(header, metadata, std::move(data));
  if (!paused_ && endpoint_->queued_bytes() > server_.options_.max_unsent_bytes) {
    paused_ = true;
    server_.metrics_->paused.add();
    endpoint_->pause();
    endpoint_->tell_when_sent();
  }
}

void ServerConnection::send_owed_credits() {
  if (state_ != State::open || owed_credits_ * 2 < server_.options_.credits) return;
  Header header;
  header.kind = Kind::credit;
  send(header, {}, {});
}

void ServerConnection::on_sent() {
  if (!paused_ || state_ != State::open) return;
  paused_ = false;
  endpoint_->resume();
}

void ServerConnection::on_call_done(ServerCall& call) {
  calls_.erase(call);
  bytes_running_ -= call.data_bytes();
  ASSERT(server_.calls_running_ > 0);
  --server_.calls_running_;
  server_.metrics_->running.add(-1);
}

void ServerConnection::close(Close why) {
  if (state_ == State::closing || state_ == State::closed) return;
  say_goodbye(why.reason, why.text);
  end(std::move(why));
}

void ServerConnection::turn_away(std::string cause) {
  say_goodbye(CloseReason::not_authenticated, kTurnedAway);
  end({CloseReason::not_authenticated, std::move(cause)});
}

void ServerConnection::say_goodbye(CloseReason reason, std::string_view text) {
  Header header;
  header.kind = Kind::goodbye;
  header.status = static_cast<uint16_t>(reason);
  send(header, std::as_bytes(std::span(text.substr(0, kMaxMetadata))), {});
}

void ServerConnection::end(Close why) {
  state_ = State::closing;
  close_ = why;
  endpoint_->close(std::move(why));
}

void ServerConnection::announce_drain() {
  if (state_ != State::open) return;
  say_goodbye(CloseReason::draining, "the server is stopping");
}

void ServerConnection::cancel_calls(Errc reason) {
  // Cancelling runs callbacks, which only post; no call ends inside this loop.
  for (ServerCall* call = calls_.first(); call != nullptr; call = ServerCallTable::next(*call)) call->cancel(reason);
}

void ServerConnection::lose_calls() {
  for (ServerCall* call = calls_.first(); call != nullptr; call = ServerCallTable::next(*call)) call->lose_connection();
}

void ServerConnection::on_closed(const Close& close) {
  // What we said before tells more than the end of the stream.
  if (close_.reason == CloseReason::none) close_ = close;
  state_ = State::closed;
  push_target_->connection_ = nullptr;
  server_.on_connection_closed(*this, close_);
  loop_.disarm(timer_);
  lose_calls();
  if (sequences_ != nullptr) server_.sequences_.leave(*sequences_);
  remove_if_done();
}

void ServerConnection::remove_if_done() {
  if (state_ == State::closed && calls_.size() == 0) server_.remove(*this);
}

void ServerConnection::arm_timer() {
  const ServerOptions& options = server_.options_;
  const Duration wait = state_ == State::hello || state_ == State::challenged
                            ? options.hello_timeout
                            : std::min(options.idle_timeout, options.slow_reader_timeout) / 4;
  loop_.arm_in(timer_, wait);
}

void ServerConnection::on_timer(void* self) { static_cast<ServerConnection*>(self)->check_timeouts(); }

void ServerConnection::check_timeouts() {
  if (state_ == State::closing || state_ == State::closed) return;
  const ServerOptions& options = server_.options_;
  const Time now = loop_.now();
  const EndpointStatus status = endpoint_->status();
  if (state_ == State::hello || state_ == State::challenged) {
    return close(
        {CloseReason::hello_timeout, fmt::format("no {} within {} s", state_ == State::hello ? "hello" : "proof",
                                                 options.hello_timeout.seconds())});
  }
  if (status.send_blocked_since != Time::never() && now - status.send_blocked_since >= options.slow_reader_timeout) {
    return close(
        {CloseReason::slow_reader, fmt::format("the client took none of {} waiting bytes for {} s",
                                               endpoint_->queued_bytes(), options.slow_reader_timeout.seconds())});
  }
  if (!paused_) {
    if (status.receiving_since != Time::never() && now - status.receiving_since >= options.idle_timeout) {
      return close({CloseReason::stalled,
                    fmt::format("a message isn't complete {} s after its start", options.idle_timeout.seconds())});
    }
    if (now - status.last_received >= options.idle_timeout) {
      return close({CloseReason::idle_timeout, fmt::format("nothing came for {} s", options.idle_timeout.seconds())});
    }
  }
  arm_timer();
}

}  // namespace cairn::srpc
