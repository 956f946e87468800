#include "tools/srpc/perf_service.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdint>
#include <utility>

namespace cairn::srpc::tools {

int64_t process_cpu_us() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * int64_t{1'000'000} + usage.ru_utime.tv_usec +
         usage.ru_stime.tv_usec;
}

const Counter& hops_of(ReactorHost& host) { return host.reactor().hops(); }

PerfService::PerfService(Server& server, std::shared_ptr<const Hops> hops) : hops_(std::move(hops)) {
  // Depth is the client's choice here; what bounds it is its connection.
  server.register_method<Transfer>(*this, &PerfService::transfer, {.max_concurrent = UINT32_MAX});
  server.register_method<Usage>(*this, &PerfService::usage);
}

Task<Result<Message<None>>> PerfService::transfer(CallContext& context, Message<TransferRequest> request) {
  const size_t wanted = request.meta.reply_bytes;
  if (wanted == 0) co_return Message<None>{};
  if (wanted == request.data.size()) co_return Message<None>{.data = std::move(request.data)};
  if (wanted > kMaxData) co_return Error(Errc::too_large, fmt::format("{} bytes, the limit is {}", wanted, kMaxData));
  if (supply_.size() < wanted) {
    CO_TRY(auto larger, co_await context.pool.alloc_chain(wanted, mem::Purpose::request, context.cancel));
    // Another call may have been faster.
    if (supply_.size() < wanted) supply_ = std::move(larger);
  }
  co_return Message<None>{.data = supply_.slice(0, wanted)};
}

Task<Result<Message<UsageReply>>> PerfService::usage(CallContext&, Message<None>) {
  uint64_t hops = 0;
  for (const Counter* counter : *hops_) hops += counter->value();
  co_return Message<UsageReply>{.meta = {static_cast<uint64_t>(process_cpu_us()), hops}};
}

}  // namespace cairn::srpc::tools
