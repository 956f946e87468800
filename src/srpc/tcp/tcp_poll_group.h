// TcpPollGroup: SRPC over TCP on one reactor. Make one before the reactor runs, and pass it to the listener and the
// connectors of that reactor. Hot sockets are tried with a plain non-blocking receive; the ring tells of the others.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "srpc/stream/stream_group.h"

namespace cairn::srpc::tcp {

class TcpPollGroup final : public stream::StreamGroup {
 public:
  TcpPollGroup(Reactor& reactor, mem::Pool& pool, mem::Purpose requests = mem::Purpose::request)
      : StreamGroup(reactor, pool, requests, {}) {}

  // Takes over a connected socket.
  std::unique_ptr<Endpoint> make_endpoint(Fd fd, std::string peer);
};

}  // namespace cairn::srpc::tcp
