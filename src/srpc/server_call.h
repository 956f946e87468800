// One call under way in a server, and the table that finds it by its request id.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reactor/cancel.h"
#include "reactor/timer.h"
#include "srpc/call_context.h"
#include "srpc/extensions.h"
#include "srpc/method_table.h"
#include "srpc/sequence_table.h"
#include "srpc/transport.h"

namespace cairn::srpc {

class ServerConnection;

// Exists from the request's arrival until its handler has returned, also when the connection is gone by then.
//
// One with a sequence outlives its connection: the client comes back for the answer on another one, where a second
// ServerCall waits for it without a handler of its own.
class ServerCall final : public detail::ReplySink {
 public:
  ServerCall(ServerConnection& connection, MethodEntry& method, const Header& header, const Trace& trace);
  ~ServerCall();

  void start(Incoming& message);
  // In place of start(): waits for the answer of the one that runs.
  void wait_for(SequenceTable::Record& record);
  // Before start().
  void keep_answer(SequenceTable::Record& record) { record_ = &record; }
  // The caller wants it no longer, or the server ends.
  void cancel(Errc reason);
  // Nobody is there for the answer any more; the caller of one with a sequence may come back.
  void lose_connection();
  uint64_t id() const { return id_; }
  uint32_t data_bytes() const { return data_bytes_; }

  // The last thing that happens to a call: it frees itself.
  void finish(std::span<const std::byte> metadata, mem::BufChain&& data) override;
  void fail(Error error) override;

 private:
  friend class ServerCallTable;
  static void on_deadline(void* self) { static_cast<ServerCall*>(self)->source_.cancel(Errc::timed_out); }
  bool waits() const { return record_ != nullptr && record_->running != this; }
  void answer(Header header, std::span<const std::byte> metadata, mem::BufChain&& data);
  void log_if_slow(Duration service);
  // To those who wait for it, and into the table.
  void share_answer(const Header& header, std::span<const std::byte> metadata, const mem::BufChain& data);
  void reply(Header header, std::span<const std::byte> metadata, mem::BufChain&& data);

  ServerConnection& connection_;
  MethodEntry& method_;
  const uint64_t id_;
  const bool notice_;
  const uint32_t data_bytes_;
  Time arrived_;
  Time started_;
  CancelSource source_;
  Timer deadline_;
  CallContext context_;
  SequenceTable::Record* record_ = nullptr;  // of one with a sequence
  bool connection_lost_ = false;
  ServerCall* next_in_bucket_ = nullptr;
  ServerCall* previous_ = nullptr;  // in order of arrival
  ServerCall* next_ = nullptr;
};

// Calls hashed by request id, and in order of arrival. Ids are the peer's: they decide only which bucket is searched.
class ServerCallTable {
 public:
  ServerCall* find(uint64_t id) const;
  // Its id is not in the table.
  void insert(ServerCall& call);
  void erase(ServerCall& call);
  size_t size() const { return size_; }
  ServerCall* first() const { return head_; }
  static ServerCall* next(const ServerCall& call) { return call.next_; }

 private:
  static constexpr size_t kBuckets = 64;
  static size_t bucket_of(uint64_t id) { return (id ^ (id >> 16)) % kBuckets; }

  std::array<ServerCall*, kBuckets> buckets_{};
  ServerCall* head_ = nullptr;
  ServerCall* tail_ = nullptr;
  size_t size_ = 0;
};

}  // namespace cairn::srpc
