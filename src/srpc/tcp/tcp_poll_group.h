// TcpPollGroup: SRPC over TCP on one reactor. Make one before the reactor runs, and pass it to the listener and the
// connectors of that reactor. Hot sockets are tried with a plain non-blocking receive; the ring tells of the others.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "srpc/stream/stream_group.h"

namespace cairn::srpc::rdma {
class UpgradeHistory;
class Upgrades;
}  // namespace cairn::srpc::rdma

namespace cairn::srpc::tls {
class TlsContext;
class TlsSession;
}  // namespace cairn::srpc::tls

namespace cairn::srpc::tcp {

class TcpPollGroup final : public stream::StreamGroup {
 public:
  TcpPollGroup(Reactor& reactor, mem::Pool& pool, mem::Purpose requests = mem::Purpose::request)
      : StreamGroup(reactor, pool, requests, {}) {}

  // From now on connections go over to RDMA where both ends can. `upgrades` outlives them.
  void allow_upgrades(rdma::Upgrades& upgrades) { upgrades_ = &upgrades; }
  rdma::Upgrades* upgrades() { return upgrades_; }
  // For TLS connections; outlives them. Without it there are none.
  void use_tls(tls::TlsContext& context) { tls_ = &context; }
  tls::TlsContext* tls() { return tls_; }

  // These take over a connected socket. One that stays with TCP:
  std::unique_ptr<Endpoint> make_endpoint(Fd fd, std::string peer);
  // A client's and a server's, which may go over to RDMA. Without a history: as make_endpoint().
  std::unique_ptr<Endpoint> connected(Fd fd, std::string peer, std::shared_ptr<rdma::UpgradeHistory> history);
  std::unique_ptr<Endpoint> accepted(Fd fd, std::string peer);
  // One of TLS, with a session that is new or of a connection that came from another poll group. It stays there: RDMA
  // would leave the encryption.
  std::unique_ptr<Endpoint> make_tls_endpoint(Fd fd, std::string peer, std::unique_ptr<tls::TlsSession> session);

 private:
  rdma::Upgrades* upgrades_ = nullptr;
  tls::TlsContext* tls_ = nullptr;
};

}  // namespace cairn::srpc::tcp
