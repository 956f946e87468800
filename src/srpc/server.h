// Server: one poll group. A process runs one per reactor; together they are what clients see as one server.
//
//   srpc::Server server(loop, registry, pool, {.poll_group = 0, .poll_groups = 1});
//   server.register_method<ChunkWrite>(host, &Host::chunk_write, {.max_concurrent = 256});
//   server.accept(std::move(endpoint));              // done by a listener: tcp/listener.h, inproc/hub.h
//   ...
//   co_await server.drain(loop.now() + seconds(10));  // before it is destroyed
//
// A handler is a coroutine
//   Task<Result<Message<M::Reply>>> Host::chunk_write(CallContext& context, Message<M::Request> request);
// that runs on the server's thread, for as many calls at a time as the limits allow. Its error goes to the client with
// code and message. It owns request.data, whose memory is free again when the last slice of it dies.
//
// A connection begins with a hello in which the client may name a poll group. If that isn't this one, the connection is
// given to it (Placement) before the first request, and never moves again.
//
// A server with keys serves nobody who can't prove that he knows one of them (handshake.h): others get a random number,
// a goodbye (not_authenticated) that tells them nothing, and no memory for payload. The proof is checked by the poll
// group that accepted the connection, before it gives it away. A server without keys is open to all clients that have
// none either.
//
// Limits, all with a defined answer: connections (refused), calls per connection and credits (the client waits; one
// that doesn't is closed: over_credit), calls per method and altogether (Errc::busy with a hint), unsent replies (the
// connection isn't read until its client has read them; slow_reader when that doesn't happen), memory for payload
// (requests wait in order, for half of their time at most: then Errc::busy).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/id.h"
#include "base/metrics.h"
#include "base/time.h"
#include "mem/pool.h"
#include "reactor/loop.h"
#include "reactor/sync.h"
#include "srpc/call_context.h"
#include "srpc/handshake.h"
#include "srpc/key_ring.h"
#include "srpc/log_gate.h"
#include "srpc/message.h"
#include "srpc/method_table.h"
#include "srpc/sequence_table.h"
#include "srpc/transport.h"

namespace cairn::srpc {

class ServerCall;
class ServerConnection;
struct ServerMetrics;

struct ServerOptions {
  uint16_t poll_group = 0;
  uint16_t poll_groups = 1;
  Id128 server_id = {};  // of this process's life: tells a client that the server was restarted. Without one, calls
                         // that are executed once (message.h) are sent once

  uint32_t max_connections = 4096;
  uint32_t max_running = 32768;  // calls of all methods and connections; more are answered with Errc::busy
  // Per connection:
  uint16_t credits = 256;                               // request messages on their way
  uint32_t max_calls = 1024;                            // requests without an answer
  uint64_t byte_credits = uint64_t{64} << 20;           // their payload; at least max_data
  uint32_t max_data = static_cast<uint32_t>(kMaxData);  // of one request; and what the pool keeps for requests
  uint64_t max_unsent_bytes = uint64_t{64} << 20;       // replies that the client doesn't take
  Duration hello_timeout = seconds(5);
  Duration idle_timeout = seconds(40);  // without a byte; clients send a ping more often than that
  Duration slow_reader_timeout = seconds(30);

  Duration slow_call = seconds(1);  // calls that are served for longer are logged, as are those ended by their
                                    // deadline: a line a second, with their trace
  SequenceLimits sequences = {};

  // Of the cluster; null: an open server. Outlives the server, and may be changed at any time (key_ring.h).
  const KeyRing* keys = nullptr;
  Protocol protocol = {};
};

// What a client has said, and proved, before it is served.
struct Introduction {
  HelloBody hello;
  std::optional<SessionKey> session;  // without a key: none
};

// Moves a connection to the poll group that its client named, or that has the fewest connections.
class Placement {
 public:
  virtual ~Placement() = default;
  // For a client that named none: the poll group with the fewest connections; those with as few take turns. Called on
  // the thread of `own`, which has accepted the connection. kAnyPollGroup: none takes any.
  virtual uint16_t choose(uint16_t own) = 0;
  // On the thread of `poll_group`: how many it serves now. kTakesNone: it stops.
  virtual void publish(uint16_t poll_group, uint32_t connections) = 0;
  static constexpr uint32_t kTakesNone = UINT32_MAX;
  // The server of `poll_group` will adopt() the connection on its own thread.
  virtual void place(uint16_t poll_group, std::unique_ptr<DetachedEndpoint> connection,
                     const Introduction& introduction) = 0;
};

class Server {
 public:
  // Everything handed in outlives the server. Metrics are registered here and in register_method: make servers and
  // methods before the reactor runs.
  Server(Loop& loop, Registry& registry, mem::Pool& pool, ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Drained before.
  ~Server();

  // `object` outlives the server. M::Request and M::Reply: message.h.
  template <Method M, typename Object, typename Class>
  void register_method(Object& object,
                       Task<Result<Message<typename M::Reply>>> (Class::*handler)(CallContext&,
                                                                                  Message<typename M::Request>),
                       MethodOptions method_options = {}) {
    struct Invoke {
      Class* object;
      decltype(handler) member;
      auto operator()(CallContext& context, Message<typename M::Request> request) const {
        return (object->*member)(context, std::move(request));
      }
    };
    add_method<M>(Invoke{&object, handler}, method_options);
  }
  // A free function or a lambda without captures.
  template <Method M>
  void register_method(Task<Result<Message<typename M::Reply>>> (*handler)(CallContext&, Message<typename M::Request>),
                       MethodOptions method_options = {}) {
    add_method<M>(handler, method_options);
  }

  // Takes over a new connection, or refuses it with a goodbye.
  void accept(std::unique_ptr<Endpoint> endpoint);
  // Goes on with a connection that another poll group accepted, whose client it has heard and recognised.
  void adopt(std::unique_ptr<Endpoint> endpoint, const Introduction& introduction);
  // Without one, a hello that names another poll group is refused, and everybody else is served here.
  void set_placement(Placement* placement) { placement_ = placement; }

  // Goes with every reply.
  void set_map_epoch(uint64_t epoch) { map_epoch_ = epoch; }
  uint64_t map_epoch() const { return map_epoch_; }

  // Refuses new connections and new calls, tells clients so, and returns when all calls are answered and all
  // connections ended. At `deadline` it cancels what still runs, and waits for handlers to notice.
  Task<void> drain(Time deadline);

  // Stops this poll group while the others go on: calls under way are answered, clients are told to go (draining); who
  // named no poll group comes back to another one, who named this one is refused. What is accepted here meanwhile is
  // given to the others. Returns when nothing is served here any more; at `deadline` it ends what still is. drain()
  // comes all the same before the end.
  Task<void> hand_over(Time deadline);

  // Ends all connections now, calls under way included, but for those with a sequence; clients may come back at once.
  void close_connections(const Close& why);

  size_t connections() const { return connections_.size(); }
  size_t calls_running() const { return calls_running_; }
  const ServerOptions& options() const { return options_; }
  Loop& loop() { return loop_; }

 private:
  friend class ServerCall;
  friend class ServerConnection;

  template <Method M, typename Invoke>
  void add_method(Invoke invoke, const MethodOptions& method_options) {
    methods_.add(M::kId, M::kName, method_options,
                 std::make_unique<detail::TypedHandler<M, Invoke>>(invoke, method_options.max_tail));
  }
  // With a goodbye, unless too many are being refused.
  void refuse(std::unique_ptr<Endpoint> endpoint);
  std::string why_refused() const;
  bool is_busy() const { return calls_running_ >= options_.max_running; }
  bool is_full() const { return connections_.size() >= options_.max_connections; }
  ServerConnection& add_connection(std::unique_ptr<Endpoint> endpoint);
  // For connections.
  // One begins or ends to be served here.
  void count_served(int change);
  void on_connection_closed(const ServerConnection& connection, const Close& close);
  // The last thing that one does.
  void remove(ServerConnection& connection);

  Loop& loop_;
  mem::Pool& pool_;
  ServerOptions options_;
  MethodTable methods_;
  std::unique_ptr<ServerMetrics> metrics_;
  SequenceTable sequences_;
  Placement* placement_ = nullptr;
  uint64_t map_epoch_ = 0;
  bool draining_ = false;
  bool handing_over_ = false;  // only this poll group drains
  uint32_t served_ = 0;        // connections past their hello
  size_t calls_running_ = 0;
  // By number, so that walking it doesn't follow addresses.
  std::map<uint64_t, std::unique_ptr<ServerConnection>> connections_;
  uint64_t next_connection_ = 1;
  Event empty_;
  Event serves_none_;
  LogGate closed_log_;
  LogGate slow_log_;
};

}  // namespace cairn::srpc
