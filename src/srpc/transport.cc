#include "srpc/transport.h"

namespace cairn::srpc {

std::unique_ptr<DetachedEndpoint> Endpoint::detach() { return nullptr; }

}  // namespace cairn::srpc
