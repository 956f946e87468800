#include "srpc/method_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::srpc {

namespace detail {

Error bad_metadata_error(std::string_view name, size_t got, size_t fixed, size_t max_tail) {
  return Error(Errc::invalid_argument,
               fmt::format("{}: {} bytes of metadata instead of {}{}", name, got, fixed,
                           max_tail == 0 ? std::string() : fmt::format(" to {}", fixed + max_tail)));
}

}  // namespace detail

MethodEntry::MethodEntry(MethodId method_id, std::string_view method_name, MethodOptions method_options,
                         Registry& registry, std::unique_ptr<detail::MethodHandler> method_handler)
    : id(method_id),
      name(method_name),
      options(method_options),
      handler(std::move(method_handler)),
      calls(registry.counter("srpc_server_calls_total", "Calls answered", fmt::format("method=\"{}\"", name))),
      errors(registry.counter("srpc_server_errors_total", "Calls answered with an error, busy included",
                              fmt::format("method=\"{}\"", name))),
      busy(registry.counter("srpc_server_busy_total", "Calls refused because too many were running",
                            fmt::format("method=\"{}\"", name))),
      timed_out(registry.counter("srpc_server_timed_out_total", "Calls whose deadline passed while they ran",
                                 fmt::format("method=\"{}\"", name))),
      request_bytes(registry.counter("srpc_server_request_bytes_total", "Payload of requests",
                                     fmt::format("method=\"{}\"", name))),
      reply_bytes(
          registry.counter("srpc_server_reply_bytes_total", "Payload of replies", fmt::format("method=\"{}\"", name))),
      queue_us(registry.histogram("srpc_server_queue_seconds",
                                  "From a request's first byte to the start of its handler",
                                  fmt::format("method=\"{}\"", name))),
      service_us(registry.histogram("srpc_server_service_seconds", "From the start of the handler to the answer",
                                    fmt::format("method=\"{}\"", name))) {}

Duration MethodEntry::retry_after(uint32_t limit) {
  constexpr int64_t kMostUs = 1'000'000;
  waiting_ = std::min(waiting_ + 1, uint32_t{1} << 20);
  const int64_t turn_us = std::min(mean_us_ * waiting_ / std::max<int64_t>(limit, 1), kMostUs);
  return std::max(options.retry_after, microseconds(turn_us));
}

void MethodEntry::ended(Duration service) {
  // Over the last eight or so; clipped, so that one that hung doesn't count for long.
  const int64_t us = std::min<int64_t>(service.us(), 10'000'000);
  mean_us_ = mean_us_ == 0 ? us : mean_us_ + (us - mean_us_) / 8;
  if (waiting_ > 0) --waiting_;
}

void MethodTable::add(MethodId id, std::string_view name, MethodOptions options,
                      std::unique_ptr<detail::MethodHandler> handler) {
  const auto at = std::ranges::lower_bound(by_id_, id, {}, [](const auto& entry) { return entry->id; });
  ASSERT(at == by_id_.end() || (*at)->id != id);
  by_id_.insert(at, std::make_unique<MethodEntry>(id, name, options, registry_, std::move(handler)));
}

MethodEntry* MethodTable::find(MethodId id) {
  const auto at = std::ranges::lower_bound(by_id_, id, {}, [](const auto& entry) { return entry->id; });
  return at == by_id_.end() || (*at)->id != id ? nullptr : at->get();
}

}  // namespace cairn::srpc
