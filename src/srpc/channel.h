// Channel: a client's way to one poll group of one server. Made on the thread that uses it.
//
//   srpc::Channel channel(loop, metrics, std::make_unique<tcp::Connector>(...), {.poll_group = 2});
//   auto reply = co_await channel.call<ChunkWrite>({.meta = {...}, .data = std::move(chain)},
//                                                  {.deadline = context.deadline, .cancel = context.cancel});
//   ...
//   co_await channel.close();   // before it is destroyed
//
// It connects by itself and again when the connection is lost, waiting longer each time. A call made meanwhile waits
// until there is a connection, but not past its deadline; the error then says what keeps the connection from coming
// about. A call that was sent on a connection that is lost fails with Errc::closed, because its effect is unknown: it
// is never sent a second time.
//
// Every call has a deadline, which travels with it. When it passes, or the call's token is cancelled, the call ends at
// once; the server is told to stop, and a late answer is dropped. Memory of the request is held until it is sent.
//
// Exceptions, for methods that are declared so (message.h): an idempotent one is sent again on the next connection,
// until its deadline; so is a sequenced one, if that connection leads to the same poll group of the same life of the
// server (the channel asks for that poll group), which doesn't execute it again. Else it ends with Errc::closed as
// others do.
//
// notify() sends and doesn't wait for an answer: it ends when the message is with the connection, which is no promise
// that it is ever served. What the server has to say by itself comes to on_push() handlers; a new connection has to ask
// for it anew, by a call of the method that made the server push.
//
// Calls go out in the order they were made, as the server's credits allow; a bounded number waits (Errc::busy beyond).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "base/time.h"
#include "reactor/loop.h"
#include "reactor/scope.h"
#include "reactor/sync.h"
#include "srpc/call.h"
#include "srpc/key_ring.h"
#include "srpc/message.h"
#include "srpc/transport.h"

namespace cairn::srpc {

namespace detail {
class ClientConnection;
}

// One per reactor, registered before it runs, shared by its channels.
struct ChannelMetrics {
  explicit ChannelMetrics(Registry& registry);

  Counter& calls;
  Counter& errors;
  Counter& connects;
  Counter& connect_failures;
  Counter& late_replies;  // to calls that had ended: dropped
  Counter& repeats;       // idempotent and sequenced calls sent again
  Counter& pushes;
  Counter& unknown_pushes;  // without a handler, or not as it expects
  Gauge& connected;
  Gauge& queued;                 // calls that wait for a connection or for credits
  Histogram& call_us;            // from call() to its end
  std::vector<Counter*> closed;  // by CloseReason
};

struct ChannelOptions {
  uint16_t poll_group = kAnyPollGroup;
  Id128 client_id = {};
  Duration default_timeout = seconds(30);  // of calls that name no deadline
  Duration connect_timeout = seconds(5);   // the hello included
  Duration backoff_min = milliseconds(10);
  Duration backoff_max = seconds(3);
  Duration keepalive = seconds(10);        // a ping when nothing was sent for that long
  Duration silence_timeout = seconds(30);  // the peer counts as gone when nothing came for that long
  uint32_t max_queued = 4096;              // calls that wait
  uint32_t max_data = static_cast<uint32_t>(kMaxData);

  // Of the cluster: the server must know one, too. null: only to servers without. Outlives the channel, and may be
  // changed at any time (key_ring.h).
  const KeyRing* keys = nullptr;
  Protocol protocol = {};
};

class Channel {
 public:
  // Begins to connect in the next round. Loop and metrics outlive it.
  Channel(Loop& loop, ChannelMetrics& metrics, std::unique_ptr<Connector> connector, ChannelOptions options = {});
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  // Closed before.
  ~Channel();

  // co_await it; see call.h.
  template <Method M>
  Call<M> call(Message<typename M::Request>&& request, const CallOptions& options = {}) {
    return Call<M>(*this, std::move(request), options);
  }

  // co_await it. Metadata only: payload needs an answer to come to an end.
  template <Method M>
  Notice<M> notify(Message<typename M::Request>&& request, const CallOptions& options = {}) {
    return Notice<M>(*this, std::move(request), options);
  }
  // `object` outlives the channel. Called for each message of that method that a server pushes, in their order, from
  // the loop; it may begin calls and must not destroy the channel. Before the first connection: in the round in which
  // the channel was made.
  template <Method M, typename Object>
  void on_push(Object& object, void (Object::*handler)(Message<typename M::Request>)) {
    push_handlers_.push_back({M::kId, [&object, handler](std::span<const std::byte> metadata) {
                                Message<typename M::Request> message;
                                if (!message.decode_metadata(metadata)) return false;
                                (object.*handler)(std::move(message));
                                return true;
                              }});
  }

  // Ends all calls with Errc::closed, says goodbye and waits for the end.
  Task<void> close();

  // Until the hello is done. Result<void>: the token's reason, or closed.
  Task<Result<void>> wait_connected(CancelToken token = {});
  // The same, but doesn't wait for another attempt when one has failed: its error.
  Task<Result<void>> wait_attempt(CancelToken token = {});
  bool connected() const { return connection_ != nullptr; }
  // The last attempt to connect found somebody at the address, whatever came of it.
  bool reached_peer() const { return reached_peer_; }

  // Of the connection; meaningful while connected.
  uint16_t poll_group() const { return agreed_.poll_group; }
  uint16_t poll_groups() const { return agreed_.poll_groups; }
  uint8_t version() const { return agreed_.version; }
  uint64_t features() const { return agreed_.features; }  // what both sides have
  // All that the server said at the start: its limits, its identity.
  const HelloReplyBody& agreed() const { return agreed_; }
  // For people: the transport ("tcp", "shm") and the other end as it names it.
  std::string_view transport() const;
  const std::string& peer() const;
  // Payload isn't received but handed over.
  bool by_reference() const;

  // Asks the server for a sign of life and waits for it. No method is involved, so every server answers. Errors: closed
  // (not connected, or lost meanwhile), the token's reason.
  Task<Result<void>> ping(CancelToken token = {});

  // The last map epoch the server named.
  uint64_t peer_map_epoch() const { return peer_map_epoch_; }
  // Why there is no connection.
  const std::string& last_error() const { return last_error_; }

  size_t calls_queued() const { return queued_; }
  // Sent and not answered, those that were given up included.
  size_t calls_in_flight() const;
  const std::string& address() const { return connector_->address(); }
  Loop& loop() { return loop_; }

 private:
  friend class detail::PendingCall;
  friend class detail::ClientConnection;

  Task<void> keep_connected();
  // One life of a connection: connect, hello, serve until it ends.
  Task<Result<void>> connect_once();

  // For PendingCall.
  void submit(detail::PendingCall& call);
  void give_up(detail::PendingCall& call, Errc reason);
  // For ClientConnection.
  void pump();
  void finished(detail::PendingCall& call);
  // True: its connection was lost, and it waits for the next one.
  bool repeat(detail::PendingCall& call);
  // To be asked for in the hello.
  uint16_t wanted_poll_group() const;
  void on_pushed(MethodId method, std::span<const std::byte> metadata);

  // `behind`: another one that waits, or null for the front.
  void enqueue(detail::PendingCall& call, detail::PendingCall* behind);
  void unqueue(detail::PendingCall& call);
  // Ends the sequenced calls that wait to be sent again and can't be on the new connection.
  void give_up_strangers();
  void fail_queued(const Error& error);

  Loop& loop_;
  ChannelMetrics& metrics_;
  std::unique_ptr<Connector> connector_;
  ChannelOptions options_;
  Scope scope_;
  bool closing_ = false;
  Event connected_event_;

  // Null until the hello is done.
  detail::ClientConnection* connection_ = nullptr;
  HelloReplyBody agreed_;
  struct PushHandler {
    MethodId method;
    std::move_only_function<bool(std::span<const std::byte>)> take;
  };
  std::vector<PushHandler> push_handlers_;
  uint64_t peer_map_epoch_ = 0;
  std::string last_error_ = "not tried yet";
  // Of the last attempt, while there is neither another one nor a connection.
  std::optional<Error> failure_;
  // Set while there is a connection or a failure.
  Event attempt_event_;
  bool reached_peer_ = false;
  uint32_t attempts_ = 0;

  detail::Sequencer sequencer_;
  // The poll group that the last hello asked for, for the sake of a call to be repeated, could not be had.
  bool poll_group_lost_ = false;

  // Calls that wait: first those that are sent again, in the order in which they were sent first; then first come first
  // served.
  detail::PendingCall* head_ = nullptr;
  detail::PendingCall* tail_ = nullptr;
  size_t queued_ = 0;
};

}  // namespace cairn::srpc
