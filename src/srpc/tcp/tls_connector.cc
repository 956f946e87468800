#include "srpc/tcp/tls_connector.h"

#include <utility>

#include "base/assert.h"
#include "reactor/socket.h"
#include "srpc/tls/tls_context.h"
#include "srpc/tls/tls_session.h"

namespace cairn::srpc::tcp {

Task<Result<std::unique_ptr<Endpoint>>> TlsConnector::connect(CancelToken token) {
  ASSERT(group_.tls() != nullptr);
  CO_TRY(Socket socket, co_await Socket::connect(group_.reactor(), to_, token));
  std::string peer = socket.peer().to_string();
  co_return group_.make_tls_endpoint(socket.release(), std::move(peer), group_.tls()->client(keys_));
}

}  // namespace cairn::srpc::tcp
