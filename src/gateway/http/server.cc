#include "gateway/http/server.h"

#include <utility>

#include "base/log.h"
#include "gateway/http/connection.h"
#include "gateway/http/date.h"
#include "gateway/http/metrics.h"
#include "reactor/listener.h"
#include "reactor/stream.h"

namespace cairn::http {
namespace {

// Out of descriptors or memory: accepting again at once would fail again.
constexpr Duration kAcceptPause = milliseconds(50);
// Over the connection limit a few more are told so; beyond that they are just closed.
constexpr size_t kMaxRefusals = 64;

void cancel_scope(void* scope) { static_cast<Scope*>(scope)->cancel(Errc::cancelled); }

}  // namespace

Server::Server(const Context& context, Options options, Handler& handler)
    : context_(context),
      options_(std::move(options)),
      handler_(handler),
      metrics_(std::make_unique<ServerMetrics>(context.registry, options_.metrics_label)),
      date_(std::make_unique<DateCache>(context.wall_clock)),
      scope_(context.loop) {}

Server::~Server() { ASSERT(scope_.running() == 0); }

Task<void> Server::accept_from(Listener* listener) {
  while (!stopping_) {
    auto socket = co_await listener->accept(idle_);
    if (socket) {
      serve(std::make_unique<SocketStream>(*std::move(socket)));
      continue;
    }
    if (socket.error().code() != Errc::busy) co_return;
    LOG(warn, "http: accepting connections pauses: {}", socket.error().message());
    (void)co_await context_.loop.sleep(kAcceptPause, idle_);
  }
}

void Server::serve(std::unique_ptr<Stream> stream) {
  metrics_->accepted.add();
  if (stopping_ || connections_ >= options_.max_connections + kMaxRefusals) {
    metrics_->closed(stopping_ ? CloseReason::stopped : CloseReason::too_many);
    return;
  }
  ++connections_;
  if (connections_ > options_.max_connections) {
    scope_.spawn(&Server::refuse, this, std::move(stream));
  } else {
    scope_.spawn(&Server::run, this, std::move(stream));
  }
}

Task<void> Server::run(std::unique_ptr<Stream> stream) {
  Connection connection(*this, std::move(stream));
  co_await connection.run();
  --connections_;
}

Task<void> Server::refuse(std::unique_ptr<Stream> stream) {
  Connection connection(*this, std::move(stream));
  co_await connection.refuse(503, "too many connections: try again later");
  --connections_;
}

Task<void> Server::stop(Duration grace) {
  stopping_ = true;
  idle_.cancel();
  Timer timer(&cancel_scope, &scope_);
  context_.loop.arm_in(timer, grace);
  co_await scope_.join();
  context_.loop.disarm(timer);
}

}  // namespace cairn::http
