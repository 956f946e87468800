#include "srpc/transport.h"

namespace cairn::srpc {

Task<Result<void>> Endpoint::read(RemoteBuf, mem::Buf) {
  co_return Error(Errc::unsupported, "this transport has no one-sided reads");
}

Task<Result<void>> Endpoint::write(mem::Buf, RemoteBuf) {
  co_return Error(Errc::unsupported, "this transport has no one-sided writes");
}

std::unique_ptr<DetachedEndpoint> Endpoint::detach() { return nullptr; }

}  // namespace cairn::srpc
