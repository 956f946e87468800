// TcpPollGroup: SRPC over TCP on one reactor. Make one before the reactor runs, and pass it to the listener and the
// connectors of that reactor. Hot sockets are tried with a plain non-blocking receive; the ring tells of the others.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "srpc/stream/stream_group.h"

namespace cairn::srpc::tls {
class TlsContext;
class TlsSession;
}  // namespace cairn::srpc::tls

namespace cairn::srpc::tcp {

class TcpPollGroup final : public stream::StreamGroup {
 public:
  TcpPollGroup(Reactor& reactor, mem::Pool& pool, mem::Purpose requests = mem::Purpose::request)
      : StreamGroup(reactor, pool, requests, {}) {}

  // For TLS connections; outlives them. Without it there are none.
  void use_tls(tls::TlsContext& context) { tls_ = &context; }
  tls::TlsContext* tls() { return tls_; }

  // Takes over a connected socket.
  std::unique_ptr<Endpoint> make_endpoint(Fd fd, std::string peer);
  // The same for TLS, with a session that is new or of a connection that came from another poll group.
  std::unique_ptr<Endpoint> make_tls_endpoint(Fd fd, std::string peer, std::unique_ptr<tls::TlsSession> session);

 private:
  tls::TlsContext* tls_ = nullptr;
};

}  // namespace cairn::srpc::tcp
