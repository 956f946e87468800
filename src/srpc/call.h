// Call: one call of a channel, awaited where it is made. It lives in the caller's coroutine frame and needs no memory
// of its own.
#pragma once

#include <coroutine>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/status.h"
#include "base/time.h"
#include "base/trace.h"
#include "mem/buf_chain.h"
#include "reactor/cancel.h"
#include "reactor/timer.h"
#include "srpc/message.h"
#include "srpc/sequencer.h"

namespace cairn::srpc {

class Channel;

// What a peer says beside its error.
struct ErrorDetail {
  Duration retry_after{};  // with Errc::busy: when to come back
  mem::BufChain data;      // e.g. the newer cluster map with Errc::stale_epoch
};

struct CallOptions {
  // Time::never(): the channel's default timeout from now.
  Time deadline = Time::never();
  CancelToken cancel = {};
  // Of the caller's cluster map, checked by handlers that care.
  uint64_t map_epoch = 0;
  // Where the reply's payload shall land, if it fits; taken before the call, so that the reply can't stand still for
  // want of memory. Without it, the reply uses the reserve, as suits small ones. Of no use where payload passes by
  // reference (Channel::by_reference).
  mem::BufChain reply_memory = {};
  // What the call belongs to. A handler gives its own on: context.trace. Lost on the way to an older server.
  Trace trace = {};
  // Filled when the call fails; outlives the call.
  ErrorDetail* detail = nullptr;
};

namespace detail {

// The part of a call that doesn't depend on its types. Known to its channel while it waits to be sent, and to the
// connection while it waits for its reply.
class PendingCall {
 public:
  // What happens to it beyond being sent and answered once.
  enum class Manner : uint8_t {
    once,
    repeatable,  // sent again when its connection is lost
    sequenced,   // the same, and the server knows it again
    notice,      // ends when it is sent
  };
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;

 protected:
  PendingCall(Channel& channel, MethodId method, Manner manner, const CallOptions& options);
  ~PendingCall();

  // False: it has ended already, go on.
  bool submit(std::coroutine_handle<> handle);
  Error take_error() { return Error(status_, std::move(error_text_)); }
  bool ok() const { return status_ == Errc::ok; }

  virtual size_t request_metadata_bytes() const = 0;
  virtual void encode_request(std::span<std::byte> out) const = 0;
  virtual mem::BufChain& request_data() = 0;
  // False: the metadata doesn't fit the type.
  virtual bool decode_reply(std::span<const std::byte> metadata, mem::BufChain&& data) = 0;

 private:
  friend class cairn::srpc::Channel;
  friend class ClientConnection;
  enum class State : uint8_t { made, queued, sent, done };

  static void on_deadline(void* self);
  static void on_cancel(void* self);
  // Sent again when its connection is lost: it keeps what it was called with.
  bool may_be_repeated() const { return manner_ == Manner::repeatable || sequence_.number != 0; }
  // In front of its metadata, at most.
  size_t extension_bytes() const {
    return (manner_ == Manner::sequenced ? sizeof(WireSequence) : 0) +
           (options_.trace.is_set() ? sizeof(WireTrace) : 0);
  }
  // Ends it: the caller goes on in a later round.
  void finish(Errc status, std::string text);

  Channel& channel_;
  MethodId method_;
  Manner manner_;
  bool sent_before_ = false;  // on a connection that was lost
  SequencedCall sequence_;
  State state_ = State::made;
  bool submitting_ = false;
  CallOptions options_;
  Errc status_ = Errc::ok;
  std::string error_text_;
  Time started_;
  uint32_t slot_ = 0;  // in the connection, while sent
  std::coroutine_handle<> handle_;
  Timer timer_;
  CancelCallback cancel_;
  PendingCall* previous_ = nullptr;  // in the channel's queue
  PendingCall* next_ = nullptr;
};

}  // namespace detail

// co_await channel.call<M>(request, options) gives Result<Message<M::Reply>>.
template <Method M>
class [[nodiscard]] Call final : private detail::PendingCall {
 public:
  Call(Channel& channel, Message<typename M::Request>&& request, const CallOptions& options)
      : PendingCall(channel, M::kId,
                    is_idempotent<M>  ? Manner::repeatable
                    : is_sequenced<M> ? Manner::sequenced
                                      : Manner::once,
                    options),
        request_(std::move(request)) {}

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> handle) { return submit(handle); }
  Result<Message<typename M::Reply>> await_resume() {
    if (!ok()) return take_error();
    return std::move(reply_);
  }

 private:
  size_t request_metadata_bytes() const override { return request_.metadata_bytes(); }
  void encode_request(std::span<std::byte> out) const override { request_.encode_metadata(out); }
  mem::BufChain& request_data() override { return request_.data; }
  bool decode_reply(std::span<const std::byte> metadata, mem::BufChain&& data) override {
    reply_.data = std::move(data);
    return reply_.decode_metadata(metadata);
  }

  Message<typename M::Request> request_;
  Message<typename M::Reply> reply_;
};

// co_await channel.notify<M>(request, options) gives Result<void>: whether it was sent.
template <Method M>
class [[nodiscard]] Notice final : private detail::PendingCall {
 public:
  Notice(Channel& channel, Message<typename M::Request>&& request, const CallOptions& options)
      : PendingCall(channel, M::kId, Manner::notice, options), request_(std::move(request)) {
    ASSERT(request_.data.empty());
  }

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> handle) { return submit(handle); }
  Result<void> await_resume() {
    if (!ok()) return take_error();
    return {};
  }

 private:
  size_t request_metadata_bytes() const override { return request_.metadata_bytes(); }
  void encode_request(std::span<std::byte> out) const override { request_.encode_metadata(out); }
  mem::BufChain& request_data() override { return request_.data; }
  // There is none.
  bool decode_reply(std::span<const std::byte>, mem::BufChain&& data) override {
    const mem::BufChain unwanted = std::move(data);
    return false;
  }

  Message<typename M::Request> request_;
};

}  // namespace cairn::srpc
