// What a server's TCP listener thinks of TLS. Clients that connect with keys for it want it, others don't.
#pragma once

#include <cstdint>

namespace cairn::srpc {

enum class Tls : uint8_t {
  off,       // a client that begins with TLS is told that this isn't SRPC
  allowed,   // the first byte tells: for the time in which a cluster changes over
  required,  // a client without is told so and served nothing
};

}  // namespace cairn::srpc
