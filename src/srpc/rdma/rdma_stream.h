// RdmaStream: a queue pair as a ByteStream whose peer's memory can be reached.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "srpc/stream/stream_group.h"

namespace cairn::srpc::rdma {

class RdmaStream final : public stream::GroupedStream {
 public:
  // The TCP connection over which the two have met, on which nothing is said any more. It is kept open, and its end is
  // this stream's end: RDMA itself doesn't tell that the other process has died. Call it before start().
  void hold(Fd socket);
};

}  // namespace cairn::srpc::rdma
