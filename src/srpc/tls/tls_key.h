// What TLS is given of a cluster key: a secret of its own, and a name under which the other side finds it. Neither
// tells anything about the key or about the other one.
#pragma once

#include <string>

#include "base/sha256.h"
#include "srpc/key_ring.h"

namespace cairn::srpc::tls {

// The external pre-shared key of TLS 1.3 (RFC 8446, 4.2.11). The caller wipes it.
Sha256 tls_secret(const SharedKey& key);
// Its identity, in the clear in each ClientHello: "srpc1:" and 16 hexadecimal digits.
std::string tls_identity(const SharedKey& key);

}  // namespace cairn::srpc::tls
