// CrossLink: what the two ends of a connection between reactors of one process share, and what travels on it.
//
// Each end belongs to its own thread. A Parcel is made by one thread, pushed to the other's reactor, and freed there;
// nothing else is touched by both but the counters below.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mem/buf_chain.h"
#include "reactor/reactor.h"
#include "srpc/close_reason.h"
#include "srpc/wire.h"

namespace cairn::srpc::inproc {

class CrossEndpoint;

struct CrossLink {
  struct Side {
    Reactor* reactor = nullptr;
    CrossEndpoint* endpoint = nullptr;  // only its own thread looks at it
    // What this side has sent and the other hasn't delivered.
    // cairn-allow(lock): two reactors count on it; see above
    std::atomic<size_t> undelivered{0};
    // This side wants to hear when that is nothing any more.
    // cairn-allow(lock): set by one reactor, taken by the other
    std::atomic<bool> wants_drained{false};
  };
  std::array<Side, 2> sides;
  Side& side(int which) { return sides[static_cast<size_t>(which)]; }
};

struct Parcel final : RemoteWork {
  enum class What : uint8_t {
    message,
    drained,  // everything that the receiver sent has been delivered
    close,    // the sender has closed; answered by closed, after which nothing more comes
    closed,
  };
  Parcel(std::shared_ptr<CrossLink> on, int receiver, What kind)
      : RemoteWork(&arrive), link(std::move(on)), to(receiver), what(kind) {}

  void send() { link->side(to).reactor->enqueue(*this); }
  static void arrive(RemoteWork& work);

  std::shared_ptr<CrossLink> link;
  int to;
  What what;
  Header header;
  std::vector<std::byte> metadata;
  mem::BufChain data;
  size_t weight = 0;  // in undelivered
};

}  // namespace cairn::srpc::inproc
