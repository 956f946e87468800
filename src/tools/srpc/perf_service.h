// PerfService: srpc-perf's methods on one poll group.
#pragma once

#include "mem/buf_chain.h"
#include "srpc/server.h"
#include "tools/srpc/methods.h"

namespace cairn::srpc::tools {

class PerfService {
 public:
  // Registers the methods; outlives the server's calls.
  explicit PerfService(Server& server);

 private:
  Task<Result<Message<None>>> transfer(CallContext& context, Message<TransferRequest> request);
  Task<Result<Message<UsageReply>>> usage(CallContext& context, Message<None> request);

  // What reads give, whatever their number: as large as the largest so far.
  mem::BufChain supply_;
};

// User and system time of this process, all threads.
int64_t process_cpu_us();

}  // namespace cairn::srpc::tools
