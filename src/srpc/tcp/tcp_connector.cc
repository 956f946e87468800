#include "srpc/tcp/tcp_connector.h"

#include <utility>

#include "reactor/socket.h"

namespace cairn::srpc::tcp {

Task<Result<std::unique_ptr<Endpoint>>> TcpConnector::connect(CancelToken token) {
  CO_TRY(Socket socket, co_await Socket::connect(group_.reactor(), to_, token));
  std::string peer = socket.peer().to_string();
  co_return group_.make_endpoint(socket.release(), std::move(peer));
}

}  // namespace cairn::srpc::tcp
