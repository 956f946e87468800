// ShmPollGroup: SRPC over shared memory on one reactor, to other processes of the machine (or other reactors of this
// one). Made and used as a TcpPollGroup.
#pragma once

#include <memory>

#include "srpc/shm/shm_stream.h"
#include "srpc/stream/stream_group.h"

namespace cairn::srpc::shm {

class ShmPollGroup final : public stream::StreamGroup {
 public:
  ShmPollGroup(Reactor& reactor, mem::Pool& pool, mem::Purpose requests = mem::Purpose::request)
      : StreamGroup(reactor, pool, requests) {}

  std::unique_ptr<Endpoint> make_endpoint(Link link);
};

}  // namespace cairn::srpc::shm
