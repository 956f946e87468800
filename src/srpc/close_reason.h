// Why a connection ended. Travels in the goodbye message, stands in the log and labels the metric
// srpc_connections_closed_total. Values are on the wire: never renumber.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace cairn::srpc {

enum class CloseReason : uint16_t {
  none = 0,                // open
  done = 1,                // this side's user closed it
  draining = 2,            // the server stops: finish what is under way, send nothing new
  peer_closed = 3,         // the peer ended the byte stream without a goodbye
  connection_lost = 4,     // reset, unreachable: the transport's error
  connect_failed = 5,      // no connection came about
  hello_timeout = 6,       // connected, and then said nothing or not enough
  idle_timeout = 7,        // nothing came for longer than agreed
  stalled = 8,             // a message began and didn't go on
  slow_reader = 9,         // the peer doesn't take what is sent to it
  bad_header = 10,         // not SRPC, a damaged header, an unknown kind
  bad_version = 11,        // no common version
  too_large = 12,          // a length over the agreed limit
  bad_sequence = 13,       // a valid message at a wrong moment: before hello, an unknown id, one id twice
  over_credit = 14,        // sent more than it had credits for
  refused = 15,            // too many connections, or not allowed
  no_poll_group = 16,      // named a poll group that doesn't exist
  not_authenticated = 17,  // the cluster's key: no proof, a wrong one, or only one side has a key
  tls_failed = 18,         // only one side wants TLS, or the two didn't get through its handshake
};
inline constexpr uint16_t kCloseReasons = 19;

// As it stands above, for logs and metrics.
std::string_view close_reason_name(CloseReason reason);
// A value from the wire; what this build doesn't know becomes peer_closed.
CloseReason close_reason_from_wire(uint16_t value);
// What calls under way get when their connection ends so.
Errc errc_of(CloseReason reason);

// A reason with the sentence that goes with it.
struct Close {
  CloseReason reason = CloseReason::none;
  std::string text;

  // "peer_closed: 10.0.0.7:7400 ended the connection"
  std::string to_string() const;
  Error to_error() const;
};

}  // namespace cairn::srpc
