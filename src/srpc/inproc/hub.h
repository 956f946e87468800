// Hub: the poll groups of one process, reachable from any of its reactors without a socket.
//
//   Hub hub({reactor0, reactor1});
//   // on each reactor's thread, once its server is there:
//   hub.open(1, server, pool, scope);
//   // anywhere: a channel on `reactor` to poll group 0
//   Channel channel(reactor, metrics, hub.connector({reactor, pool, scope}, 0), options);
//   // before the server goes:
//   hub.close(1);
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "srpc/inproc/cross_endpoint.h"
#include "srpc/server.h"
#include "srpc/transport.h"

namespace cairn::srpc::inproc {

// Outlives the reactors' run, and the connectors.
class Hub {
 public:
  // One per poll group, in their order.
  explicit Hub(const std::vector<Reactor*>& reactors);
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // On the poll group's own thread. Connections that come before open or after close are refused.
  void open(uint16_t poll_group, Server& server, mem::Pool& pool, Scope& scope);
  void close(uint16_t poll_group);

  // For channels on `from.reactor`. To its own poll group by direct dispatch, to others by hops.
  std::unique_ptr<Connector> connector(const CrossEndpoint::Context& from, uint16_t poll_group);

 private:
  friend class HubConnector;
  struct Slot {
    Reactor* reactor;
    // Only the reactor's own thread looks at these.
    Server* server = nullptr;
    mem::Pool* pool = nullptr;
    Scope* scope = nullptr;
  };
  std::vector<Slot> slots_;
};

}  // namespace cairn::srpc::inproc
