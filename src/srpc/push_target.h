// PushTarget: how a server tells a client something by itself, on the connection of a call that asked for it.
//
//   subscribers_.push_back(context.client);                                  // in a handler
//   if (target->push<MapChanged>({.meta = {epoch}}).code() == Errc::closed)  // later; forget it
//
// Messages have no payload, arrive in order, and are lost with the connection: the client has to ask anew.
#pragma once

#include <span>

#include "base/assert.h"
#include "base/status.h"
#include "srpc/message.h"

namespace cairn::srpc {

class ServerConnection;

// On the server's thread.
class PushTarget {
 public:
  // Errors: closed (for good: the connection has ended), busy (the client doesn't take what it gets; nothing was
  // sent), unsupported (a client that knows no pushes).
  template <Method M>
  Result<void> push(const Message<typename M::Request>& message) {
    ASSERT(message.data.empty());
    std::byte metadata[kMaxMetadata];
    const size_t size = message.metadata_bytes();
    ASSERT(size <= kMaxMetadata);
    message.encode_metadata({metadata, size});
    return push(M::kId, {metadata, size});
  }

 private:
  friend class ServerConnection;
  explicit PushTarget(ServerConnection& connection) : connection_(&connection) {}
  Result<void> push(MethodId method, std::span<const std::byte> metadata);

  ServerConnection* connection_;  // null once it has ended
};

}  // namespace cairn::srpc
