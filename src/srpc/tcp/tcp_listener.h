// TcpListener: accepts SRPC connections on one reactor and gives them to its server. The N poll groups of a process
// open one each on the same port; the kernel spreads the connections, and the hello moves those that asked for another
// poll group (placement.h).
//
//   TRY(auto listener, TcpListener::open(group, server, Address::loopback(7400)));
//   ...
//   co_await listener->close();   // before it is destroyed, and before the server is drained
#pragma once

#include <memory>

#include "base/status.h"
#include "reactor/address.h"
#include "reactor/listener.h"
#include "reactor/scope.h"
#include "srpc/server.h"
#include "srpc/tcp/tcp_poll_group.h"
#include "srpc/tls/tls_policy.h"

namespace cairn::srpc::tcp {

class TcpListener {
 public:
  // Group and server outlive it. Port 0: any; the other poll groups then take port(). TLS goes by the server's keys:
  // without any it is invalid_argument.
  static Result<std::unique_ptr<TcpListener>> open(TcpPollGroup& group, Server& server, const Address& at,
                                                   Tls tls = Tls::off);
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  uint16_t port() const { return listener_.local().port(); }
  Task<void> close();

 private:
  TcpListener(TcpPollGroup& group, Server& server, Listener listener, Tls tls);
  Task<void> accept();
  std::unique_ptr<Endpoint> make_endpoint(Fd fd, std::string peer);

  TcpPollGroup& group_;
  Server& server_;
  Listener listener_;
  Tls tls_;
  Scope scope_;
};

}  // namespace cairn::srpc::tcp
