// What an HTTP server counts.
#pragma once

#include <array>
#include <string_view>

#include "base/metrics.h"
#include "base/time.h"
#include "gateway/http/request.h"
#include "gateway/http/server.h"

namespace cairn::http {

// Requests that cost alike.
enum class MethodClass : uint8_t { read, write, del, other, count_ };
MethodClass method_class(Method method) noexcept;

class ServerMetrics {
 public:
  ServerMetrics(Registry& registry, std::string_view label);

  Gauge& connections;
  Gauge& in_flight;
  Counter& accepted;
  Counter& bytes_received;
  Counter& bytes_sent;
  void closed(CloseReason reason) { closed_[static_cast<size_t>(reason)]->add(); }
  void answered(Method method, int status, Duration took);
  uint64_t closed_count(CloseReason reason) const { return closed_[static_cast<size_t>(reason)]->value(); }

 private:
  static constexpr size_t kClasses = static_cast<size_t>(MethodClass::count_);
  std::array<Counter*, static_cast<size_t>(CloseReason::count_)> closed_{};
  std::array<std::array<Counter*, 6>, kClasses> requests_{};  // by the status's first digit
  std::array<Histogram*, kClasses> seconds_{};
};

}  // namespace cairn::http
