#include "gateway/http/connection.h"

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "gateway/http/body.h"
#include "gateway/http/date.h"
#include "gateway/http/writer.h"

namespace cairn::http {
namespace {

constexpr size_t kFirstHeadBytes = 2048;
// What a client may still be sending while it gets our last words.
constexpr uint64_t kMaxLingerBytes = uint64_t{64} << 20;

void cancel_reads(void* wire) { static_cast<Wire*>(wire)->cancel_reads(Errc::cancelled); }

}  // namespace

Connection::Connection(Server& server, std::unique_ptr<Stream> stream)
    : server_(server),
      options_(server.options_),
      metrics_(*server.metrics_),
      wire_(server.context_.loop, std::move(stream), server.options_, server.scope_.token()),
      peer_(wire_.stream().peer()) {
  head_bytes_.resize(std::min(kFirstHeadBytes, options_.max_head_bytes));
}

Task<void> Connection::run() {
  metrics_.connections.add(1);
  Outcome outcome{.keep = true};
  while (outcome.keep) {
    outcome = co_await serve_one();
    count_bytes();
  }
  if (outcome.linger) co_await linger();
  count_bytes();
  wire_.stream().close();
  metrics_.closed(outcome.reason);
  metrics_.connections.add(-1);
  LOG(debug, "http: {} closed: {}", peer_, close_reason_name(outcome.reason));
}

Task<void> Connection::refuse(int status, std::string_view reason) {
  (void)co_await answer_bad_head(status, reason, CloseReason::too_many);
  co_await linger();
  wire_.stream().close();
  metrics_.closed(CloseReason::too_many);
}

void Connection::count_bytes() {
  metrics_.bytes_received.add(wire_.received() - counted_received_);
  metrics_.bytes_sent.add(wire_.sent() - counted_sent_);
  counted_received_ = wire_.received();
  counted_sent_ = wire_.sent();
}

CloseReason Connection::reason_of_failure(Errc code, CloseReason in_time) const {
  if (code == Errc::timed_out) return in_time;
  if (code == Errc::cancelled) return CloseReason::stopped;
  return CloseReason::client_gone;
}

Task<Connection::Outcome> Connection::read_head() {
  Loop& loop = server_.context_.loop;
  // Between requests a stopping server ends the wait; once a head has begun, it is served.
  CancelCallback on_stop(server_.idle_, &cancel_reads, &wire_);
  if (server_.stopping()) co_return Outcome{.reason = CloseReason::stopped};
  const bool first = head_done_ == Time();
  wire_.set_read_limit(loop.now() + (first ? options_.head_time : options_.idle_time));
  size_t got = 0;
  for (;;) {
    if (got == head_bytes_.size()) {
      if (got >= options_.max_head_bytes) {
        co_return co_await answer_bad_head(431, "the request's head is too long", CloseReason::head_too_large);
      }
      head_bytes_.resize(std::min(head_bytes_.size() * 4, options_.max_head_bytes));
    }
    const auto room = std::as_writable_bytes(std::span(head_bytes_)).subspan(got);
    auto seen = co_await wire_.peek_head(room);
    if (!seen || *seen == 0) {
      const Errc code = seen ? Errc::closed : seen.error().code();
      if (got == 0) {
        if (code == Errc::closed) co_return Outcome{.reason = CloseReason::client_closed};
        co_return Outcome{.reason = reason_of_failure(code, CloseReason::idle)};
      }
      if (code == Errc::timed_out) {
        co_return co_await answer_bad_head(408, "the request's head took too long", CloseReason::head_timeout);
      }
      co_return Outcome{.reason = reason_of_failure(code, CloseReason::head_timeout)};
    }
    if (got == 0) {
      on_stop.reset();
      if (!first) wire_.set_read_limit(loop.now() + options_.head_time);
      // Empty lines before a request line come from old clients' bodies (RFC 9112 section 2.2).
      if (*seen >= 2 && head_bytes_[0] == '\r' && head_bytes_[1] == '\n') {
        if (!co_await wire_.take_head(room.first(2))) co_return Outcome{.reason = CloseReason::client_gone};
        continue;
      }
    }
    const std::string_view bytes(head_bytes_.data(), got + *seen);
    const HeadScan scan = scan_head(bytes, got);
    if (scan.state == HeadScan::State::malformed) {
      co_return co_await answer_bad_head(400, scan.what, CloseReason::bad_request);
    }
    const size_t end = scan.state == HeadScan::State::complete ? scan.size : bytes.size();
    if (!co_await wire_.take_head(room.first(end - got))) co_return Outcome{.reason = CloseReason::client_gone};
    got = end;
    if (scan.state == HeadScan::State::complete) {
      head_size_ = end;
      head_done_ = loop.now();
      co_return Outcome{.keep = true};
    }
  }
}

Task<Connection::Outcome> Connection::answer_bad_head(int status, std::string_view reason, CloseReason why) {
  head_ = RequestHead();
  Writer writer({.wire = &wire_,
                 .head = &head_,
                 .server_name = options_.server_name,
                 .date = server_.date_->now(),
                 .skip_bytes = 0,
                 .stopping = true});
  co_await server_.handler_.refuse(status, reason, writer);
  LOG(debug, "http: {} answered {}: {}", peer_, status, reason);
  co_return Outcome{.reason = why, .linger = writer.complete()};
}

Task<Connection::Outcome> Connection::serve_one() {
  const Outcome head = co_await read_head();
  if (!head.keep) co_return head;
  const auto bytes = std::span(head_bytes_).first(head_size_);
  const HeadLimits limits{.max_fields = options_.max_fields, .max_target_bytes = options_.max_target_bytes};
  if (const auto error = parse_head(bytes, limits, head_)) {
    co_return co_await answer_bad_head(error->status, error->reason, CloseReason::bad_request);
  }
  wire_.start_body();
  Writer writer({.wire = &wire_,
                 .head = &head_,
                 .server_name = options_.server_name,
                 .date = server_.date_->now(),
                 .skip_bytes = options_.skip_bytes,
                 .stopping = server_.stopping()});
  Body body(head_, wire_, writer);
  writer.set_body(&body);
  Request request(
      {.head = &head_, .peer = peer_, .body = &body, .pool = &server_.context_.pool, .cancel = server_.scope_.token()});
  metrics_.in_flight.add(1);
  co_await server_.handler_.handle(request, writer);
  metrics_.in_flight.add(-1);
  if (!writer.started()) {
    writer.clear_headers();
    writer.set_status(500);
    (void)co_await writer.send("the server gave no answer\n");
  }
  metrics_.answered(head_.method, writer.status(), server_.context_.loop.now() - head_done_);
  co_return co_await settle(body, writer);
}

Task<Connection::Outcome> Connection::settle(Body& body, Writer& writer) {
  if (body.failure() != Errc::ok) {
    const bool malformed = body.failure() == Errc::protocol_error || body.failure() == Errc::too_large;
    co_return Outcome{
        .reason = malformed ? CloseReason::bad_request : reason_of_failure(body.failure(), CloseReason::stalled),
        .linger = writer.complete()};
  }
  if (writer.failed()) co_return Outcome{.reason = CloseReason::client_gone};
  if (!writer.complete()) co_return Outcome{.reason = CloseReason::aborted};
  if (writer.closing()) {
    if (!body.complete()) co_return Outcome{.reason = CloseReason::unread_body, .linger = true};
    co_return Outcome{.reason = server_.stopping() ? CloseReason::stopped : CloseReason::not_kept, .linger = true};
  }
  // A rest that was worth keeping the connection for.
  while (!body.complete()) {
    const auto seen = co_await body.peek(SIZE_MAX);
    if (!seen) co_return Outcome{.reason = reason_of_failure(seen.error().code(), CloseReason::stalled)};
    if (!seen->empty() && !co_await body.skip(seen->size())) co_return Outcome{.reason = CloseReason::client_gone};
  }
  co_return Outcome{.keep = true};
}

Task<void> Connection::linger() {
  // Closing with unread bytes would reset the connection, and the reset may overtake our answer (RFC 9112 section 9.6).
  Stream& stream = wire_.stream();
  stream.shutdown_send();
  Guard guard(server_.context_.loop, server_.scope_.token());
  guard.set_limit(server_.context_.loop.now() + options_.linger_time);
  uint64_t left = kMaxLingerBytes;
  while (left > 0) {
    const auto n = co_await stream.recv(std::as_writable_bytes(std::span(head_bytes_)), guard.token());
    if (!n || *n == 0) co_return;
    left -= std::min<uint64_t>(*n, left);
  }
}

}  // namespace cairn::http
