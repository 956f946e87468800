// What a server counts beside its methods.
#pragma once

#include <fmt/format.h>

#include <array>

#include "base/metrics.h"
#include "srpc/close_reason.h"

namespace cairn::srpc {

struct ServerMetrics {
  explicit ServerMetrics(Registry& registry)
      : accepted(registry.counter("srpc_server_connections_accepted_total", "Connections accepted")),
        placed(registry.counter("srpc_server_connections_placed_total",
                                "Connections given to the poll group that their client named")),
        open(registry.gauge("srpc_server_connections", "Open connections")),
        running(registry.gauge("srpc_server_calls_running", "Calls without an answer")),
        paused(registry.counter("srpc_server_paused_total", "Connections not read because their client doesn't read")),
        pushes(registry.counter("srpc_server_pushes_total", "Messages pushed to clients")),
        unknown_method(registry.counter("srpc_server_unknown_method_total", "Calls of methods that don't exist")) {
    for (uint16_t i = 0; i < kCloseReasons; ++i) {
      closed[i] = &registry.counter("srpc_server_connections_closed_total", "Ended connections by reason",
                                    fmt::format("reason=\"{}\"", close_reason_name(static_cast<CloseReason>(i))));
    }
  }

  Counter& accepted;
  Counter& placed;
  Gauge& open;
  Gauge& running;
  Counter& paused;
  Counter& pushes;
  Counter& unknown_method;
  std::array<Counter*, kCloseReasons> closed{};
};

}  // namespace cairn::srpc
