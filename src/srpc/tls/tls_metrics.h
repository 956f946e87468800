// What TLS counts on one reactor, both sides together.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "base/metrics.h"

namespace cairn::srpc::tls {

enum class HandshakeFailure : uint8_t {
  key,         // the sides have no key in common, or one of them doesn't know the key that it names
  plain,       // the other side doesn't speak TLS
  version,     // it speaks no TLS 1.3
  protocol,    // what came makes no sense, or was altered on its way
  unfinished,  // the connection ended before
};
inline constexpr std::array<std::string_view, 5> kHandshakeFailures = {"key", "plain", "version", "protocol",
                                                                       "unfinished"};

struct TlsMetrics {
  explicit TlsMetrics(Registry& registry)
      : handshakes(registry.counter("srpc_tls_handshakes_total", "TLS handshakes that came about")) {
    for (size_t i = 0; i < failures.size(); ++i) {
      failures[i] = &registry.counter("srpc_tls_handshake_failures_total", "TLS handshakes that didn't, by reason",
                                      fmt::format("reason=\"{}\"", kHandshakeFailures[i]));
    }
  }
  void failed(HandshakeFailure why) { failures[static_cast<size_t>(why)]->add(); }

  Counter& handshakes;
  std::array<Counter*, kHandshakeFailures.size()> failures{};
};

}  // namespace cairn::srpc::tls
