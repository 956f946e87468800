#include "srpc/server_call.h"

#include <utility>

#include "base/assert.h"
#include "srpc/server_connection.h"

namespace cairn::srpc {

ServerCall::ServerCall(ServerConnection& connection, MethodEntry& method, const Header& header)
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
               .deadline = Time::never(),
               .cancel = source_,
               .client = connection.push_target_,
               .retry_after = {},
               .error_data = {}} {
  if (header.time_us != 0) {
    context_.deadline = started_ + microseconds(header.time_us);
    connection.loop_.arm(deadline_, context_.deadline);
  }
  ++method_.running;
}

ServerCall::~ServerCall() {
  context_.loop.disarm(deadline_);
  --method_.running;
}

void ServerCall::start(Incoming& message) {
  method_.queue_us.record_us(static_cast<uint64_t>((started_ - message.arrived).us()));
  method_.request_bytes.add(data_bytes_);
  method_.handler->start(*this, context_, message);
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
  method_.service_us.record_us(static_cast<uint64_t>((context_.loop.now() - started_).us()));
  header.kind = Kind::reply;
  header.request_id = id_;
  header.method = method_.id;
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
