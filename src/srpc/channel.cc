#include "srpc/channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "reactor/deadline.h"
#include "srpc/client_connection.h"

namespace cairn::srpc {

ChannelMetrics::ChannelMetrics(Registry& registry)
    : calls(registry.counter("srpc_client_calls_total", "Calls made")),
      errors(registry.counter("srpc_client_errors_total", "Calls that ended with an error")),
      connects(registry.counter("srpc_client_connects_total", "Connections made, hello included")),
      connect_failures(registry.counter("srpc_client_connect_failures_total", "Connections that didn't come about")),
      late_replies(registry.counter("srpc_client_late_replies_total", "Replies to calls that had ended, dropped")),
      repeats(registry.counter("srpc_client_repeats_total", "Calls sent again after a lost connection")),
      pushes(registry.counter("srpc_client_pushes_total", "Messages that servers pushed")),
      unknown_pushes(registry.counter("srpc_client_unknown_pushes_total",
                                      "Pushed messages without a handler, or not as it expects")),
      connected(registry.gauge("srpc_client_connected", "Channels with a connection")),
      queued(registry.gauge("srpc_client_queued_calls", "Calls that wait for a connection or for credits")),
      call_us(registry.histogram("srpc_client_call_seconds", "From call to end")) {
  for (uint16_t i = 0; i < kCloseReasons; ++i) {
    closed.push_back(&registry.counter("srpc_client_connections_closed_total", "Ended connections by reason",
                                       fmt::format("reason=\"{}\"", close_reason_name(static_cast<CloseReason>(i)))));
  }
}

Channel::Channel(Loop& loop, ChannelMetrics& metrics, std::unique_ptr<Connector> connector, ChannelOptions options)
    : loop_(loop),
      metrics_(metrics),
      connector_(std::move(connector)),
      options_(options),
      scope_(loop),
      connected_event_(loop),
      attempt_event_(loop),
      sequencer_(loop) {
  scope_.spawn(&Channel::keep_connected, this);
}

Channel::~Channel() { ASSERT(queued_ == 0); }

size_t Channel::calls_in_flight() const { return connection_ == nullptr ? 0 : connection_->in_flight(); }

std::string_view Channel::transport() const {
  ASSERT(connected());
  return connection_->endpoint().caps().name;
}

const std::string& Channel::peer() const {
  ASSERT(connected());
  return connection_->endpoint().peer();
}

bool Channel::by_reference() const { return connection_ != nullptr && connection_->by_reference(); }

Task<void> Channel::keep_connected() {
  const CancelToken token = scope_.token();
  Duration backoff = options_.backoff_min;
  while (!closing_) {
    const uint64_t connects_before = metrics_.connects.value();
    Result<void> ended = co_await connect_once();
    if (closing_) break;
    last_error_ = ended.error().to_string();
    failure_ = ended.error();
    attempt_event_.set();
    if (metrics_.connects.value() != connects_before) backoff = options_.backoff_min;  // it had worked
    // Spread by half, so that the clients of a restarted server don't all come at once.
    const auto spread = static_cast<int64_t>(loop_.rng().below(static_cast<uint64_t>(backoff.ns / 2 + 1)));
    const Duration wait = backoff - nanoseconds(spread);
    ++attempts_;
    LOG(debug, "channel to {}: {}; trying again in {} ms", connector_->address(), last_error_, wait.ms());
    if (!co_await loop_.sleep(wait, token)) break;
    backoff = std::min(backoff * 2, options_.backoff_max);
  }
}

Task<Result<void>> Channel::connect_once() {
  failure_.reset();
  attempt_event_.reset();
  reached_peer_ = false;
  Deadline deadline(loop_, loop_.now() + options_.connect_timeout, scope_.token());
  auto endpoint = co_await connector_->connect(deadline.token());
  if (!endpoint) {
    metrics_.connect_failures.add();
    // The system's own errors say it already.
    if (endpoint.error().message().starts_with("connect to ")) co_return std::move(endpoint).error();
    co_return std::move(endpoint).error().with_context("connect to " + connector_->address());
  }
  reached_peer_ = true;
  detail::ClientConnection connection(*this, *std::move(endpoint));
  auto greeted = co_await connection.hello(deadline.token());
  poll_group_lost_ = !greeted;
  if (!greeted) {
    metrics_.connect_failures.add();
    last_error_ = "hello to " + connector_->address() + ": " + greeted.error().to_string();
    connection.close({CloseReason::hello_timeout, "no hello"});
    (void)co_await connection.closed().wait();
    metrics_.closed[static_cast<size_t>(connection.why_closed().reason)]->add();
    co_return std::move(greeted).error().with_context("hello to " + connector_->address());
  }
  metrics_.connects.add();
  metrics_.connected.add(1);
  attempts_ = 0;
  agreed_ = connection.agreed();
  connection_ = &connection;
  connected_event_.set();
  attempt_event_.set();
  give_up_strangers();
  pump();
  if (!co_await connection.closed().wait(scope_.token())) {
    connection.close({CloseReason::done, ""});
    (void)co_await connection.closed().wait();
  }
  connection_ = nullptr;
  connected_event_.reset();
  metrics_.connected.add(-1);
  metrics_.closed[static_cast<size_t>(connection.why_closed().reason)]->add();
  co_return connection.why_closed().to_error();
}

Task<Result<void>> Channel::wait_connected(CancelToken token) {
  while (!connected()) {
    if (closing_) co_return Error(Errc::closed, "the channel is closed");
    CO_TRY(co_await connected_event_.wait(token));
  }
  co_return Result<void>();
}

Task<Result<void>> Channel::wait_attempt(CancelToken token) {
  while (!connected()) {
    if (closing_) co_return Error(Errc::closed, "the channel is closed");
    if (failure_) co_return *failure_;
    CO_TRY(co_await attempt_event_.wait(token));
  }
  co_return Result<void>();
}

Task<Result<void>> Channel::ping(CancelToken token) {
  if (!connected()) co_return Error(Errc::closed, "not connected: " + last_error_);
  detail::PendingPing ping(loop_);
  co_return co_await connection_->ping(ping, token);
}

Task<void> Channel::close() {
  closing_ = true;
  fail_queued(Error(Errc::closed, "the channel is closed"));
  connected_event_.set();
  attempt_event_.set();
  co_await scope_.close();
  fail_queued(Error(Errc::closed, "the channel is closed"));
}

void Channel::submit(detail::PendingCall& call) {
  metrics_.calls.add();
  call.started_ = loop_.now();
  if (closing_) return call.finish(Errc::closed, "the channel is closed");
  if (call.options_.cancel.cancelled())
    return call.finish(call.options_.cancel.reason(), "cancelled before it was sent");
  if (call.request_metadata_bytes() + call.extension_bytes() > kMaxMetadata) {
    return call.finish(Errc::too_large,
                       fmt::format("{} bytes of metadata, the limit is {}", call.request_metadata_bytes(),
                                   kMaxMetadata - call.extension_bytes()));
  }
  if (call.request_data().size() > kMaxData) {
    return call.finish(Errc::too_large,
                       fmt::format("{} bytes of data, the limit is {}", call.request_data().size(), kMaxData));
  }
  if (call.options_.deadline == Time::never()) call.options_.deadline = loop_.now() + options_.default_timeout;
  if (call.options_.deadline <= loop_.now()) return call.finish(Errc::timed_out, "the deadline passed before the call");
  if (queued_ >= options_.max_queued) {
    return call.finish(Errc::busy, fmt::format("{} calls already wait for {}", queued_, connector_->address()));
  }
  loop_.arm(call.timer_, call.options_.deadline);
  call.cancel_.arm(call.options_.cancel, &detail::PendingCall::on_cancel, &call);
  if (head_ == nullptr && connection_ != nullptr && connection_->can_send(call)) {
    connection_->send(call);
  } else {
    enqueue(call, tail_);
  }
}

void Channel::give_up(detail::PendingCall& call, Errc reason) {
  using State = detail::PendingCall::State;
  if (call.state_ == State::queued) {
    unqueue(call);
    const std::string why = connected() ? "waiting for credits" : "not connected: " + last_error_;
    const std::string_view sent = call.sent_before_ ? "not sent again" : "not sent";
    call.finish(reason, fmt::format("{} to {}, {}", sent, connector_->address(), why));
    return;
  }
  ASSERT(call.state_ == State::sent);
  // The server knows the deadline itself.
  connection_->abandon(call, reason != Errc::timed_out);
  call.finish(reason, fmt::format("no answer from {} yet; the effect is unknown", connector_->address()));
}

void Channel::pump() {
  while (head_ != nullptr && connection_ != nullptr && connection_->can_send(*head_)) {
    detail::PendingCall& call = *head_;
    unqueue(call);
    connection_->send(call);
  }
}

bool Channel::repeat(detail::PendingCall& call) {
  if (!call.may_be_repeated() || closing_) return false;
  // Beyond the limit of those who wait: it has waited before.
  call.sent_before_ = true;
  metrics_.repeats.add();
  detail::PendingCall* behind = nullptr;
  for (auto* at = head_; at != nullptr && at->sent_before_ && at->sequence_.number <= call.sequence_.number;
       at = at->next_) {
    behind = at;
  }
  enqueue(call, behind);
  return true;
}

uint16_t Channel::wanted_poll_group() const {
  const detail::SequencedCall* repeat = sequencer_.oldest();
  if (options_.poll_group != kAnyPollGroup || repeat == nullptr || poll_group_lost_) return options_.poll_group;
  return repeat->poll_group;
}

void Channel::give_up_strangers() {
  for (detail::PendingCall *at = head_, *next = nullptr; at != nullptr && at->sent_before_; at = next) {
    next = at->next_;
    if (at->sequence_.number == 0 || detail::Sequencer::may_repeat_on(at->sequence_, agreed_)) continue;
    unqueue(*at);
    const bool restarted = agreed_.server_id != at->sequence_.server;
    at->finish(Errc::closed,
               fmt::format("the connection to {} was lost, and {}; the effect is unknown", connector_->address(),
                           restarted ? "the server was restarted" : "another poll group answers now"));
  }
}

void Channel::on_pushed(MethodId method, std::span<const std::byte> metadata) {
  metrics_.pushes.add();
  const auto found = std::ranges::find(push_handlers_, method, &PushHandler::method);
  if (found == push_handlers_.end() || !found->take(metadata)) metrics_.unknown_pushes.add();
}

void Channel::finished(detail::PendingCall& call) {
  sequencer_.finished(call.sequence_);
  if (!call.ok()) metrics_.errors.add();
  metrics_.call_us.record_us(static_cast<uint64_t>((loop_.now() - call.started_).us()));
}

void Channel::enqueue(detail::PendingCall& call, detail::PendingCall* behind) {
  call.state_ = detail::PendingCall::State::queued;
  call.previous_ = behind;
  call.next_ = behind == nullptr ? head_ : behind->next_;
  (call.previous_ == nullptr ? head_ : call.previous_->next_) = &call;
  (call.next_ == nullptr ? tail_ : call.next_->previous_) = &call;
  ++queued_;
  metrics_.queued.add(1);
}

void Channel::unqueue(detail::PendingCall& call) {
  (call.previous_ == nullptr ? head_ : call.previous_->next_) = call.next_;
  (call.next_ == nullptr ? tail_ : call.next_->previous_) = call.previous_;
  --queued_;
  metrics_.queued.add(-1);
}

void Channel::fail_queued(const Error& error) {
  while (head_ != nullptr) {
    detail::PendingCall& call = *head_;
    unqueue(call);
    call.finish(error.code(), error.message());
  }
}

}  // namespace cairn::srpc
