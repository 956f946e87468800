#include "srpc/server_call.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "srpc/server_connection.h"

namespace cairn::srpc {

ServerCall::ServerCall(ServerConnection& connection, MethodEntry& method, const Header& header, const Trace& trace)
    : connection_(connection),
      method_(method),
      id_(header.request_id),
      notice_(header.kind == Kind::notice),
      data_bytes_(header.data_bytes),
      started_(connection.loop_.now()),
      deadline_(&on_deadline, this),
      context_{.loop = connection.loop_,
               .pool = connection.server_.pool_,
               .peer = connection.peer(),
               .client_id = connection.client_id_,
               .by_reference = connection.endpoint_->caps().by_reference,
               .features = connection.features_,
               .map_epoch = header.map_epoch,
               .trace = trace,
               .deadline = Time::never(),
               .cancel = source_,
               .client = connection.push_target_,
               .retry_after = {},
               .error_data = {}} {
  if (header.time_us != 0) {
    context_.deadline = started_ + microseconds(header.time_us);
    connection.loop_.arm(deadline_, context_.deadline);
  }
}

ServerCall::~ServerCall() { context_.loop.disarm(deadline_); }

void ServerCall::start(Incoming& message) {
  ++method_.running;
  arrived_ = message.arrived;
  method_.queue_us.record_us(static_cast<uint64_t>((started_ - arrived_).us()));
  method_.request_bytes.add(data_bytes_);
  method_.handler->start(*this, context_, message);
}

void ServerCall::wait_for(SequenceTable::Record& record) {
  record_ = &record;
  record.waiting.push_back(this);
  // The deadline is that of the call that runs, which goes on to it now that its caller is back.
  context_.loop.disarm(deadline_);
  ServerCall& running = *record.running;
  if (running.context_.deadline == Time::never()) {
    running.context_.loop.disarm(running.deadline_);
  } else {
    running.context_.loop.arm(running.deadline_, running.context_.deadline);
  }
}

void ServerCall::cancel(Errc reason) { (waits() ? record_->running : this)->source_.cancel(reason); }

void ServerCall::lose_connection() {
  connection_lost_ = true;
  if (record_ == nullptr) return source_.cancel(Errc::cancelled);
  ServerCall& running = *record_->running;
  const auto lost = [](const ServerCall* call) { return call->connection_lost_; };
  if (!running.connection_lost_ || !std::ranges::all_of(record_->waiting, lost)) return;
  const Time until = context_.loop.now() + connection_.server_.sequences_.limits().keep;
  context_.loop.arm(running.deadline_, std::min(running.context_.deadline, until));
}

void ServerCall::finish(std::span<const std::byte> metadata, mem::BufChain&& data) {
  Header header;
  method_.reply_bytes.add(data.size());
  answer(header, metadata, std::move(data));
}

void ServerCall::fail(Error error) {
  Header header;
  header.status = static_cast<uint16_t>(error.code());
  if (error.code() == Errc::busy) header.time_us = static_cast<uint32_t>(context_.retry_after.us());
  method_.errors.add();
  const std::string_view text = std::string_view(error.message()).substr(0, kMaxMetadata);
  answer(header, std::as_bytes(std::span(text)), std::move(context_.error_data));
}

void ServerCall::answer(Header header, std::span<const std::byte> metadata, mem::BufChain&& data) {
  method_.calls.add();
  const Duration service = context_.loop.now() - started_;
  method_.service_us.record_us(static_cast<uint64_t>(service.us()));
  method_.ended(service);
  log_if_slow(service);
  ASSERT(method_.running > 0);
  --method_.running;
  header.kind = Kind::reply;
  header.method = method_.id;
  if (record_ != nullptr) share_answer(header, metadata, data);
  reply(header, metadata, std::move(data));
}

void ServerCall::log_if_slow(Duration service) {
  Server& server = connection_.server_;
  const bool late = source_.reason() == Errc::timed_out;
  if (late) method_.timed_out.add();
  const Duration slow = method_.options.slow_call.ns > 0 ? method_.options.slow_call : server.options_.slow_call;
  if (!late && service < slow) return;
  const auto left_out = server.slow_log_.open(context_.loop.now());
  if (!left_out) return;
  LOG(info, "{} call of {} from {}: queue {} us, service {} us, trace {}{}", late ? "late" : "slow", method_.name,
      connection_.peer(), (started_ - arrived_).us(), service.us(),
      context_.trace.is_set() ? context_.trace.id.to_string() : "none", *left_out);
}

void ServerCall::share_answer(const Header& header, std::span<const std::byte> metadata, const mem::BufChain& data) {
  ASSERT(!waits());
  for (ServerCall* repeat : std::exchange(record_->waiting, {})) repeat->reply(header, metadata, mem::BufChain(data));
  connection_.server_.sequences_.end(*std::exchange(record_, nullptr), {.status = header.status,
                                                                        .time_us = header.time_us,
                                                                        .metadata = {metadata.begin(), metadata.end()},
                                                                        .data = data});
}

void ServerCall::reply(Header header, std::span<const std::byte> metadata, mem::BufChain&& data) {
  header.request_id = id_;
  ServerConnection& connection = connection_;
  if (!notice_) connection.send(header, metadata, std::move(data));
  connection.on_call_done(*this);
  if (notice_) connection.on_notice_done();
  delete this;
  connection.remove_if_done();
}

ServerCall* ServerCallTable::find(uint64_t id) const {
  ServerCall* call = buckets_[bucket_of(id)];
  while (call != nullptr && call->id_ != id) call = call->next_in_bucket_;
  return call;
}

void ServerCallTable::insert(ServerCall& call) {
  ServerCall*& bucket = buckets_[bucket_of(call.id_)];
  call.next_in_bucket_ = bucket;
  bucket = &call;
  call.previous_ = tail_;
  (tail_ == nullptr ? head_ : tail_->next_) = &call;
  tail_ = &call;
  ++size_;
}

void ServerCallTable::erase(ServerCall& call) {
  ServerCall** at = &buckets_[bucket_of(call.id_)];
  while (*at != &call) at = &(*at)->next_in_bucket_;
  *at = call.next_in_bucket_;
  (call.previous_ == nullptr ? head_ : call.previous_->next_) = call.next_;
  (call.next_ == nullptr ? tail_ : call.next_->previous_) = call.previous_;
  ASSERT(size_ > 0);
  --size_;
}

}  // namespace cairn::srpc
