// ReactorPlacement: moves connections between the poll groups of one process, each on a reactor of its own.
//
//   ReactorPlacement placement({reactor0, reactor1});
//   // on each reactor's thread, once its server and transport are there:
//   placement.open(1, server, {&tcp_group, &shm_group});  server.set_placement(&placement);
//   // and before they go:
//   placement.close(1);
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "reactor/reactor.h"
#include "srpc/server.h"
#include "srpc/transport.h"

namespace cairn::srpc {

// Outlives the reactors' run.
class ReactorPlacement final : public Placement {
 public:
  // One per poll group, in their order.
  explicit ReactorPlacement(const std::vector<Reactor*>& reactors);

  // On the poll group's own thread. A connection that comes before open or after close is dropped, as is one of a
  // transport that isn't there.
  void open(uint16_t poll_group, Server& server, std::vector<PollGroup*> transports);
  void close(uint16_t poll_group);

  void place(uint16_t poll_group, std::unique_ptr<DetachedEndpoint> connection,
             const Introduction& introduction) override;

 private:
  struct Slot {
    Reactor* reactor;
    // Only the reactor's own thread looks at these.
    Server* server = nullptr;
    std::vector<PollGroup*> transports{};
  };
  static void arrive(Slot& slot, DetachedEndpoint& connection, const Introduction& introduction);

  std::vector<Slot> slots_;
};

}  // namespace cairn::srpc
