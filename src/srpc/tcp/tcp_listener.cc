#include "srpc/tcp/tcp_listener.h"

#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "reactor/socket.h"
#include "srpc/tls/tls_context.h"
#include "srpc/tls/tls_session.h"

namespace cairn::srpc::tcp {
namespace {

// After a failed accept, which mostly means that descriptors ran out: some may be free by then.
constexpr Duration kPause = milliseconds(100);

}  // namespace

TcpListener::TcpListener(TcpPollGroup& group, Server& server, Listener listener, Tls tls)
    : group_(group), server_(server), listener_(std::move(listener)), tls_(tls), scope_(group.reactor()) {}

Result<std::unique_ptr<TcpListener>> TcpListener::open(TcpPollGroup& group, Server& server, const Address& at,
                                                       Tls tls) {
  if (tls != Tls::off && server.options().keys == nullptr) {
    return Error(Errc::invalid_argument, "TLS needs the cluster's key, and this server has none");
  }
  ASSERT(tls == Tls::off || group.tls() != nullptr);
  TRY(Listener listener, Listener::open(group.reactor(), at, {.reuse_port = true, .backlog = 1024}));
  std::unique_ptr<TcpListener> self(new TcpListener(group, server, std::move(listener), tls));
  self->scope_.spawn(&TcpListener::accept, self.get());
  return self;
}

Task<void> TcpListener::accept() {
  const CancelToken token = scope_.token();
  while (!token.cancelled()) {
    auto socket = co_await listener_.accept(token);
    if (!socket) {
      if (token.cancelled()) break;
      LOG(warn, "srpc: can't accept connections on port {}: {}", port(), socket.error().to_string());
      (void)co_await group_.reactor().sleep(kPause, token);
      continue;
    }
    std::string peer = socket->peer().to_string();
    server_.accept(make_endpoint(socket->release(), std::move(peer)));
  }
}

std::unique_ptr<Endpoint> TcpListener::make_endpoint(Fd fd, std::string peer) {
  if (tls_ == Tls::off) return group_.accepted(std::move(fd), std::move(peer));
  return group_.make_tls_endpoint(std::move(fd), std::move(peer), group_.tls()->server(*server_.options().keys, tls_));
}

Task<void> TcpListener::close() {
  co_await scope_.close();
  listener_.close();
}

}  // namespace cairn::srpc::tcp
