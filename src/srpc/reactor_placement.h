// ReactorPlacement: moves connections between the poll groups of one process, each on a reactor of its own.
//
// Each poll group publishes how many connections it serves, when that changes; whoever accepts one reads these numbers
// and counts what is on its way, so that a burst that comes to one poll group is spread. Nothing of this is touched
// between a connection's hello and its end.
//
//   ReactorPlacement placement({reactor0, reactor1});
//   // on each reactor's thread, once its server and transport are there:
//   placement.open(1, server, {&tcp_group, &shm_group});  server.set_placement(&placement);
//   // and before they go:
//   placement.close(1);
#pragma once

#include <atomic>
#include <deque>
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

  uint16_t choose(uint16_t own) override;
  void publish(uint16_t poll_group, uint32_t connections) override;
  void place(uint16_t poll_group, std::unique_ptr<DetachedEndpoint> connection,
             const Introduction& introduction) override;

 private:
  struct Slot {
    explicit Slot(Reactor* its_reactor) : reactor(its_reactor) {}
    Reactor* const reactor;
    // Written by its own thread.
    // cairn-allow(lock): at the begin and end of connections only
    std::atomic<uint32_t> connections{kTakesNone};
    // Placed there, not arrived yet.
    // cairn-allow(lock): the same
    std::atomic<uint32_t> coming{0};
    // Only the reactor's own thread looks at these.
    Server* server = nullptr;
    std::vector<PollGroup*> transports{};
    uint16_t turn = 0;  // where the next choice begins
  };
  static void arrive(Slot& slot, DetachedEndpoint& connection, const Introduction& introduction);

  std::deque<Slot> slots_;
};

}  // namespace cairn::srpc
