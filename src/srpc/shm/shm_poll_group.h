// ShmPollGroup: SRPC over shared memory on one reactor, to other processes of the machine (or other reactors of this
// one). Made and used as a TcpPollGroup.
#pragma once

#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/metrics.h"
#include "mem/arena.h"
#include "srpc/shm/shm_stream.h"
#include "srpc/stream/stream_group.h"

namespace cairn::srpc::shm {

class ShmPollGroup final : public stream::StreamGroup {
 public:
  // `arena`: where the pool's memory is from; if it is shared memory (Sharing::machine), servers move payload directly
  // between that and theirs. It outlives the group.
  ShmPollGroup(Reactor& reactor, Registry& registry, mem::Pool& pool, const mem::Arena& arena,
               mem::Purpose requests = mem::Purpose::request)
      : StreamGroup(reactor, pool, requests, kHot),
        arena_(arena),
        bells_(registry.counter("srpc_shm_bells_total", "System calls that woke the other side of shared memory")),
        moved_bytes_(
            registry.counter("srpc_shm_moved_bytes_total",
                             "Payload moved between a client's memory and this server's, outside of the rings")) {}

  std::unique_ptr<Endpoint> make_endpoint(Link link);
  const Fd& shared_memfd() const { return arena_.memfd(); }
  const mem::Arena& arena() const { return arena_; }
  // Holds memory that the server at the other end of `socket` may still reach, until that end is gone.
  void hold_until_gone(Fd socket, std::vector<mem::BufChain>&& memory);
  Counter& bells() { return bells_; }
  Counter& moved_bytes() { return moved_bytes_; }

 private:
  // A look into the ring takes some nanoseconds.
  static constexpr Hot kHot = {.most = 64, .misses = 65536};

  static Task<void> hold(ShmPollGroup* self, Fd socket, std::vector<mem::BufChain> memory);

  const mem::Arena& arena_;
  Counter& bells_;
  Counter& moved_bytes_;
};

}  // namespace cairn::srpc::shm
