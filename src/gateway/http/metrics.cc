#include "gateway/http/metrics.h"

#include <algorithm>
#include <string>

namespace cairn::http {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(MethodClass::count_)> kClassNames = {"read", "write",
                                                                                                "delete", "other"};
constexpr std::array<std::string_view, static_cast<size_t>(CloseReason::count_)> kReasonNames = {
    "client_closed", "client_gone",    "not_kept",    "idle",    "head_timeout", "stalled",
    "bad_request",   "head_too_large", "unread_body", "aborted", "too_many",     "stopped"};

std::string labels(std::string_view first, std::string_view name, std::string_view value) {
  std::string text(first);
  if (!text.empty()) text += ',';
  return text.append(name).append("=\"").append(value).append("\"");
}

}  // namespace

std::string_view close_reason_name(CloseReason reason) noexcept { return kReasonNames[static_cast<size_t>(reason)]; }

MethodClass method_class(Method method) noexcept {
  switch (method) {
    case Method::get:
    case Method::head:
      return MethodClass::read;
    case Method::put:
    case Method::post:
      return MethodClass::write;
    case Method::del:
      return MethodClass::del;
    case Method::options:
    case Method::other:
      break;
  }
  return MethodClass::other;
}

ServerMetrics::ServerMetrics(Registry& registry, std::string_view label)
    : connections(registry.gauge("http_connections", "Open connections", label)),
      in_flight(registry.gauge("http_requests_in_flight", "Requests being answered", label)),
      accepted(registry.counter("http_connections_accepted_total", "Connections taken", label)),
      bytes_received(registry.counter("http_bytes_received_total", "Bytes of heads and bodies received", label)),
      bytes_sent(registry.counter("http_bytes_sent_total", "Bytes of heads and bodies sent", label)) {
  for (size_t i = 0; i < closed_.size(); ++i) {
    closed_[i] = &registry.counter("http_connections_closed_total", "Connections ended, by reason",
                                   labels(label, "reason", kReasonNames[i]));
  }
  for (size_t i = 0; i < kClasses; ++i) {
    const std::string of_class = labels(label, "method", kClassNames[i]);
    seconds_[i] = &registry.histogram("http_request_duration_seconds", "From a request's head to the end of its answer",
                                      of_class);
    for (size_t digit = 1; digit < requests_[i].size(); ++digit) {
      requests_[i][digit] = &registry.counter("http_requests_total", "Requests answered, by method and status",
                                              labels(of_class, "status", std::to_string(digit) + "xx"));
    }
  }
}

void ServerMetrics::answered(Method method, int status, Duration took) {
  const auto index = static_cast<size_t>(method_class(method));
  requests_[index][static_cast<size_t>(std::clamp(status / 100, 1, 5))]->add();
  seconds_[index]->record_us(static_cast<uint64_t>(std::max<int64_t>(took.us(), 0)));
}

}  // namespace cairn::http
