// HttpFront: an HTTP server with its listener on one reactor.
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "gateway/http/server.h"
#include "reactor/address.h"
#include "reactor/listener.h"
#include "reactor/reactor.h"
#include "reactor/scope.h"
#include "reactor/task.h"

namespace cairn::node {

class HttpFront {
 public:
  // Before the reactor runs. Everything handed in outlives the front.
  HttpFront(Reactor& reactor, const http::Server::Context& context, http::Options options, http::Handler& handler)
      : reactor_(reactor), server_(context, std::move(options), handler), scope_(reactor) {}

  // On the reactor's thread. Others may listen on the same port: the process holds it, and each reactor joins.
  Result<void> open(const Address& at) {
    TRY(listener_, Listener::open(reactor_, at, {.reuse_port = true}));
    scope_.spawn(&http::Server::accept_from, &server_, &listener_);
    return {};
  }
  // Accepts nothing more, ends what is under way within `grace`. Fine without open().
  Task<void> close(Duration grace) {
    listener_.close();
    co_await server_.stop(grace);
    co_await scope_.close();
  }

  size_t connections() const { return server_.connections(); }

 private:
  Reactor& reactor_;
  http::Server server_;
  Listener listener_;
  Scope scope_;
};

}  // namespace cairn::node
