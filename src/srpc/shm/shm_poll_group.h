// ShmPollGroup: SRPC over shared memory on one reactor, to other processes of the machine (or other reactors of this
// one). Made and used as a TcpPollGroup.
#pragma once

#include <memory>

#include "base/metrics.h"
#include "srpc/shm/shm_stream.h"
#include "srpc/stream/stream_group.h"

namespace cairn::srpc::shm {

class ShmPollGroup final : public stream::StreamGroup {
 public:
  ShmPollGroup(Reactor& reactor, Registry& registry, mem::Pool& pool, mem::Purpose requests = mem::Purpose::request)
      : StreamGroup(reactor, pool, requests, kHot),
        bells_(registry.counter("srpc_shm_bells_total", "System calls that woke the other side of shared memory")) {}

  std::unique_ptr<Endpoint> make_endpoint(Link link);
  Counter& bells() { return bells_; }

 private:
  // A look into the ring takes some nanoseconds.
  static constexpr Hot kHot = {.most = 64, .misses = 65536};

  Counter& bells_;
};

}  // namespace cairn::srpc::shm
