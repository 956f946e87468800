#include "srpc/close_reason.h"

#include <array>

namespace cairn::srpc {
namespace {

struct Entry {
  std::string_view name;
  Errc code;
};

constexpr std::array<Entry, kCloseReasons> kTable = {{
    {"none", Errc::closed},
    {"done", Errc::closed},
    {"draining", Errc::unavailable},
    {"peer_closed", Errc::closed},
    {"connection_lost", Errc::closed},
    {"connect_failed", Errc::unavailable},
    {"hello_timeout", Errc::closed},
    {"idle_timeout", Errc::closed},
    {"stalled", Errc::closed},
    {"slow_reader", Errc::closed},
    {"bad_header", Errc::protocol_error},
    {"bad_version", Errc::unsupported},
    {"too_large", Errc::too_large},
    {"bad_sequence", Errc::protocol_error},
    {"over_credit", Errc::protocol_error},
    {"refused", Errc::unavailable},
    {"no_poll_group", Errc::invalid_argument},
    {"not_authenticated", Errc::unauthenticated},
    {"tls_failed", Errc::protocol_error},
}};

}  // namespace

std::string_view close_reason_name(CloseReason reason) { return kTable[static_cast<size_t>(reason)].name; }

CloseReason close_reason_from_wire(uint16_t value) {
  return value != 0 && value < kCloseReasons ? static_cast<CloseReason>(value) : CloseReason::peer_closed;
}

Errc errc_of(CloseReason reason) { return kTable[static_cast<size_t>(reason)].code; }

std::string Close::to_string() const {
  std::string out(close_reason_name(reason));
  if (!text.empty()) out.append(": ").append(text);
  return out;
}

Error Close::to_error() const { return Error(errc_of(reason), "connection closed: " + to_string()); }

}  // namespace cairn::srpc
