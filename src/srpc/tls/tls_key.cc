#include "srpc/tls/tls_key.h"

#include <span>
#include <string_view>

#include "base/hex.h"

namespace cairn::srpc::tls {
namespace {

// Beside those of handshake.cc; none is the beginning of another one.
constexpr std::string_view kSecretLabel = "srpc 1 tls secret";
constexpr std::string_view kIdentityLabel = "srpc 1 tls identity";
constexpr size_t kIdentityBytes = 8;

}  // namespace

Sha256 tls_secret(const SharedKey& key) { return hmac_sha256(key.bytes(), kSecretLabel); }

std::string tls_identity(const SharedKey& key) {
  const Sha256 whole = hmac_sha256(key.bytes(), kIdentityLabel);
  return "srpc1:" + to_hex(std::span(whole).first(kIdentityBytes));
}

}  // namespace cairn::srpc::tls
