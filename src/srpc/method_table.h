// The methods of a server: what each may use, what it has used, and the code that turns bytes into its types and back.
#pragma once

#include <coroutine>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/metrics.h"
#include "base/status.h"
#include "reactor/task.h"
#include "srpc/call_context.h"
#include "srpc/message.h"
#include "srpc/transport.h"

namespace cairn::srpc {

struct MethodOptions {
  // Calls served at one time on this poll group; more are answered with Errc::busy.
  uint32_t max_concurrent = 1024;
  // The least hint that goes with busy; see MethodEntry::retry_after.
  Duration retry_after = milliseconds(2);
  // Payload of a request; more is answered with Errc::too_large.
  size_t max_data = kMaxData;
  // In place of ServerOptions::slow_call; zero: that. For those that wait for something to happen, by intention.
  Duration slow_call{};
  // Bytes behind the fixed struct of a request; more is answered with Errc::invalid_argument.
  size_t max_tail = 0;
};

namespace detail {

// Where a handler's outcome goes. Called once per call.
class ReplySink {
 public:
  virtual void finish(std::span<const std::byte> metadata, mem::BufChain&& data) = 0;
  virtual void fail(Error error) = 0;

 protected:
  ~ReplySink() = default;
};

// A coroutine that starts at once and frees itself at its end; whoever starts one counts it until its sink is called.
struct Detached {
  struct promise_type {
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    [[noreturn]] void unhandled_exception() noexcept {
      assertion_failed("exception left a coroutine", __FILE__, __LINE__);
    }
  };
};

class MethodHandler {
 public:
  virtual ~MethodHandler() = default;
  // Runs the handler up to its first suspension. `sink` and `context` live until the sink is called; it may be called
  // before this returns.
  virtual void start(ReplySink& sink, CallContext& context, Incoming& message) = 0;
};

Error bad_metadata_error(std::string_view name, size_t got, size_t fixed, size_t max_tail);

template <typename M, typename Invoke>
class TypedHandler final : public MethodHandler {
 public:
  TypedHandler(Invoke invoke, size_t max_tail) : invoke_(invoke), max_tail_(max_tail) {}

  void start(ReplySink& sink, CallContext& context, Incoming& message) override {
    constexpr size_t fixed = kMetadataBytes<typename M::Request>;
    if (message.metadata.size() < fixed || message.metadata.size() > fixed + max_tail_) {
      sink.fail(bad_metadata_error(M::kName, message.metadata.size(), fixed, max_tail_));
      return;
    }
    run(invoke_, sink, context, message);
  }

 private:
  // `message` is valid up to the first suspension, which is long enough: invoke() moves the request into its frame.
  static Detached run(Invoke invoke, ReplySink& sink, CallContext& context, Incoming& message) {
    answer(sink, co_await invoke(context, take_request(message)));
  }
  static Message<typename M::Request> take_request(Incoming& message) {
    Message<typename M::Request> request;
    (void)request.decode_metadata(message.metadata);
    request.data = std::move(message.data);
    return request;
  }
  // Not in the coroutine: the buffer would live in its frame.
  static void answer(ReplySink& sink, Result<Message<typename M::Reply>>&& result) {
    if (!result) {
      sink.fail(std::move(result).error());
      return;
    }
    std::byte buffer[kMaxMetadata];
    const size_t size = result->metadata_bytes();
    ASSERT(size <= kMaxMetadata);
    ASSERT(result->data.size() <= kMaxData);
    result->encode_metadata({buffer, size});
    sink.finish({buffer, size}, std::move(result->data));
  }

  Invoke invoke_;
  size_t max_tail_;
};

}  // namespace detail

// One registered method.
struct MethodEntry {
  MethodEntry(MethodId method_id, std::string_view method_name, MethodOptions method_options, Registry& registry,
              std::unique_ptr<detail::MethodHandler> method_handler);

  MethodId id;
  std::string name;
  MethodOptions options;
  std::unique_ptr<detail::MethodHandler> handler;
  uint32_t running = 0;

  // For a call that is refused because `limit` run: when its turn could come. What runs ends, one after the other,
  // within the time that a call takes of late; those that were refused and haven't found room since come first. So
  // clients that do what they are told come back spread, as fast as they can be served.
  Duration retry_after(uint32_t limit);
  void ended(Duration service);

  Counter& calls;
  Counter& errors;  // answered with something else than ok; busy is counted in `busy` too
  Counter& busy;
  Counter& timed_out;  // cancelled by their deadline
  Counter& request_bytes;
  Counter& reply_bytes;
  Histogram& queue_us;    // from the request's first byte to the start of its handler
  Histogram& service_us;  // from there to its answer

 private:
  int64_t mean_us_ = 0;   // of the last calls' service
  uint32_t waiting_ = 0;  // refused, less those that have ended since
};

class MethodTable {
 public:
  explicit MethodTable(Registry& registry) : registry_(registry) {}

  // Each id once.
  void add(MethodId id, std::string_view name, MethodOptions options, std::unique_ptr<detail::MethodHandler> handler);
  MethodEntry* find(MethodId id);

 private:
  Registry& registry_;
  std::vector<std::unique_ptr<MethodEntry>> by_id_;  // sorted by id: a handful, looked up by bisection
};

}  // namespace cairn::srpc
