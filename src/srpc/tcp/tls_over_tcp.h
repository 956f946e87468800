// TlsOverTcp: TLS on a socket; what is its own is the way to another poll group.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "srpc/tcp/tcp_poll_group.h"
#include "srpc/tls/tls_stream.h"

namespace cairn::srpc::tcp {

class TlsOverTcp final : public tls::TlsStream {
 public:
  TlsOverTcp(TcpPollGroup& group, Fd fd, std::string peer, std::unique_ptr<tls::TlsSession> session);
  std::unique_ptr<DetachedEndpoint> detach() override;
};

}  // namespace cairn::srpc::tcp
