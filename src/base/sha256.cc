#include "base/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/assert.h"

namespace cairn {
namespace {

// Fetched once: looking an algorithm up by EVP_sha256() takes a lock and a search at each use since OpenSSL 3.
const EVP_MD* algorithm() {
  static const EVP_MD* const md = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return md;
}

}  // namespace

Sha256 sha256(std::string_view text) {
  Sha256 out;
  ASSERT(EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(out.data()), nullptr, algorithm(),
                    nullptr) == 1);
  return out;
}

Sha256 hmac_sha256(std::span<const std::byte> key, std::string_view text) {
  Sha256 out;
  unsigned int size = 0;
  const auto* result =
      HMAC(algorithm(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
           text.size(), reinterpret_cast<unsigned char*>(out.data()), &size);
  ASSERT(result != nullptr && size == out.size());
  return out;
}

bool equal_secret(std::string_view a, std::string_view b) {
  return equal_secret(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

bool equal_secret(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void wipe(std::span<std::byte> secret) { OPENSSL_cleanse(secret.data(), secret.size()); }

}  // namespace cairn
