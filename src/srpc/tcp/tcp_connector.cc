#include "srpc/tcp/tcp_connector.h"

#include <utility>

#include "reactor/socket.h"
#include "srpc/rdma/upgrades.h"

namespace cairn::srpc::tcp {

TcpConnector::TcpConnector(TcpPollGroup& group, Address to, Upgrade upgrade)
    : group_(group), to_(to), address_(to.to_string()) {
  if (upgrade == Upgrade::if_possible && group.upgrades() != nullptr) {
    history_ = group.upgrades()->make_history(address_);
  }
}

Task<Result<std::unique_ptr<Endpoint>>> TcpConnector::connect(CancelToken token) {
  CO_TRY(Socket socket, co_await Socket::connect(group_.reactor(), to_, token));
  std::string peer = socket.peer().to_string();
  co_return group_.connected(socket.release(), std::move(peer), history_);
}

}  // namespace cairn::srpc::tcp
