// Server: HTTP/1.1 on one reactor. Each connection is one coroutine in the server's scope, which reads a request, has
// the handler answer it, and goes on with the next: pipelined requests are answered in order.
//
//   Server server({.loop = reactor, .pool = pool, .registry = registry, .wall_clock = clock}, {}, handler);
//   scope.spawn(&Server::accept_from, &server, &listener);     // until the listener is closed
//   ...
//   co_await server.stop(seconds(10));                          // no new requests; waits for those under way
//
// Whatever a client does costs a bounded amount: bytes and fields of a head, time for a head, progress of a body in
// both directions, idle time, number of connections. When a limit is hit the client gets an answer with the reason
// where one can still be sent, then the connection closes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/time.h"
#include "gateway/http/handler.h"
#include "mem/pool.h"
#include "reactor/loop.h"
#include "reactor/scope.h"
#include "reactor/task.h"

namespace cairn {
class Listener;
class Stream;
}  // namespace cairn

namespace cairn::http {

struct Options {
  std::string server_name = "Cairn";  // the Server header
  std::string metrics_label{};        // listener="s3"
  size_t max_head_bytes = 16 * 1024;  // S3 clients send up to 2 KiB metadata and long signed queries
  size_t max_fields = 128;
  size_t max_target_bytes = 8 * 1024;
  size_t max_connections = 4096;
  Duration head_time = seconds(15);   // from a head's first byte (or the accept) to its end
  Duration idle_time = seconds(75);   // between requests
  Duration stall_time = seconds(30);  // time spent waiting for the client within which `stall_bytes` must pass
  size_t stall_bytes = 16 * 1024;
  uint64_t send_bytes_per_second = 16 * 1024;  // an answer's piece may take stall_time and its size at this rate
  uint64_t skip_bytes = 64 * 1024;             // an unread body up to this is skipped to keep the connection
  Duration linger_time = seconds(2);           // for the client to take the reason before the connection is reset
};

// Why connections ended; a label of http_connections_closed_total.
enum class CloseReason : uint8_t {
  client_closed,   // between requests
  client_gone,     // in the midst of one
  not_kept,        // "Connection: close" or HTTP/1.0
  idle,            // no further request within idle_time
  head_timeout,    // the head took too long
  stalled,         // the body or the answer made no progress
  bad_request,     // the head or the body's framing is malformed
  head_too_large,  // a limit on heads
  unread_body,     // answered without taking the body
  aborted,         // the handler gave up in the midst of an answer
  too_many,        // over max_connections
  stopped,         // the server stops
  count_
};
std::string_view close_reason_name(CloseReason reason) noexcept;

class ServerMetrics;
class DateCache;

class Server {
 public:
  struct Context {
    Loop& loop;
    mem::Pool& pool;
    Registry& registry;
    const WallClock& wall_clock;
  };

  // `handler` outlives the server.
  Server(const Context& context, Options options, Handler& handler);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Stopped before.
  ~Server();

  // Accepts until the listener is closed or the server stops. `listener` outlives it.
  Task<void> accept_from(Listener* listener);
  // Takes a connection that came from elsewhere.
  void serve(std::unique_ptr<Stream> stream);

  // Idle connections close at once, the others after their current response; what is left after `grace` is cut.
  Task<void> stop(Duration grace);

  size_t connections() const { return connections_; }
  bool stopping() const { return stopping_; }

 private:
  friend class Connection;

  Task<void> run(std::unique_ptr<Stream> stream);
  Task<void> refuse(std::unique_ptr<Stream> stream);

  Context context_;
  Options options_;
  Handler& handler_;
  std::unique_ptr<ServerMetrics> metrics_;
  std::unique_ptr<DateCache> date_;
  size_t connections_ = 0;
  bool stopping_ = false;
  CancelSource idle_;  // cancelled at stop(): accepting, and waits between requests
  Scope scope_;        // cancelled when the grace is over
};

}  // namespace cairn::http
