// What srpc-perf's server serves.
#pragma once

#include <string_view>

#include "base/endian.h"
#include "srpc/message.h"

namespace cairn::srpc::tools {

// Takes payload, and gives `reply_bytes` of it: a write (0), a read (no payload in the request), an echo (both).
struct TransferRequest {
  Le32 reply_bytes;
};
static_assert(sizeof(TransferRequest) == 4);
struct Transfer {
  static constexpr MethodId kId{0x7e01};
  static constexpr std::string_view kName = "perf_transfer";
  using Request = TransferRequest;
  using Reply = None;
};

// What the server's process has used so far.
struct UsageReply {
  Le64 cpu_us;  // user and system, all threads
  Le64 hops;    // pieces of work that one thread handed to another, all poll groups
};
static_assert(sizeof(UsageReply) == 16);
struct Usage {
  static constexpr MethodId kId{0x7e03};  // 0x7e02 knew no hops
  static constexpr std::string_view kName = "perf_usage";
  using Request = None;
  using Reply = UsageReply;
};

}  // namespace cairn::srpc::tools
