#include "srpc/near_connector.h"

#include <utility>

#include "base/log.h"

namespace cairn::srpc {

Task<Result<std::unique_ptr<Endpoint>>> NearConnector::connect(CancelToken token) {
  auto near = co_await shm_.connect(token);
  if (near || token.cancelled()) co_return near;
  LOG(debug, "srpc: {} by TCP: {}", address(), near.error().to_string());
  co_return co_await far_->connect(token);
}

}  // namespace cairn::srpc
