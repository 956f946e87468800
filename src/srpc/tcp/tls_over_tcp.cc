#include "srpc/tcp/tls_over_tcp.h"

#include <utility>

#include "srpc/tcp/tcp_stream.h"

namespace cairn::srpc::tcp {
namespace {

class TlsDetached final : public DetachedEndpoint {
 public:
  TlsDetached(Fd fd, std::string peer, std::unique_ptr<tls::TlsSession> session)
      : fd_(std::move(fd)), peer_(std::move(peer)), session_(std::move(session)) {}
  std::unique_ptr<Endpoint> attach(PollGroup& group) override {
    auto* mine = dynamic_cast<TcpPollGroup*>(&group);
    if (mine == nullptr) return nullptr;
    return mine->make_tls_endpoint(std::move(fd_), std::move(peer_), std::move(session_));
  }

 private:
  Fd fd_;
  std::string peer_;
  std::unique_ptr<tls::TlsSession> session_;
};

}  // namespace

std::unique_ptr<Endpoint> TcpPollGroup::make_tls_endpoint(Fd fd, std::string peer,
                                                          std::unique_ptr<tls::TlsSession> session) {
  return StreamGroup::make_endpoint(
      std::make_unique<TlsOverTcp>(*this, std::move(fd), std::move(peer), std::move(session)));
}

TlsOverTcp::TlsOverTcp(TcpPollGroup& group, Fd fd, std::string peer, std::unique_ptr<tls::TlsSession> session)
    : TlsStream(group.reactor(), std::make_unique<TcpStream>(group, std::move(fd), std::move(peer)),
                std::move(session)) {}

std::unique_ptr<DetachedEndpoint> TlsOverTcp::detach() {
  std::string name = peer();
  // What was received and not decrypted yet, and what was encrypted and not sent yet, are in the session.
  auto session = take_session();
  return std::make_unique<TlsDetached>(static_cast<TcpStream&>(lower()).release(), std::move(name), std::move(session));
}

}  // namespace cairn::srpc::tcp
