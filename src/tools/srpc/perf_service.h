// PerfService: srpc-perf's methods on one poll group.
#pragma once

#include <memory>
#include <vector>

#include "base/metrics.h"
#include "mem/buf_chain.h"
#include "srpc/reactor_host.h"
#include "srpc/server.h"
#include "tools/srpc/methods.h"

namespace cairn::srpc::tools {

class PerfService {
 public:
  // The reactors' counters of work that came from other threads: of all poll groups, complete before the first call.
  using Hops = std::vector<const Counter*>;

  // Registers the methods; outlives the server's calls.
  PerfService(Server& server, std::shared_ptr<const Hops> hops);

 private:
  Task<Result<Message<None>>> transfer(CallContext& context, Message<TransferRequest> request);
  Task<Result<Message<UsageReply>>> usage(CallContext& context, Message<None> request);

  std::shared_ptr<const Hops> hops_;
  // What reads give, whatever their number: as large as the largest so far.
  mem::BufChain supply_;
};

// Where a host counts what other threads hand to it.
const Counter& hops_of(ReactorHost& host);

// User and system time of this process, all threads.
int64_t process_cpu_us();

}  // namespace cairn::srpc::tools
