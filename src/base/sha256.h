// SHA-256, HMAC-SHA256, and what goes with secrets, by OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace cairn {

using Sha256 = std::array<std::byte, 32>;

Sha256 sha256(std::string_view text);
Sha256 hmac_sha256(std::span<const std::byte> key, std::string_view text);

// In time that doesn't depend on where they differ: for signatures and proofs. Lengths are no secret.
bool equal_secret(std::string_view a, std::string_view b);
bool equal_secret(std::span<const std::byte> a, std::span<const std::byte> b);

// Overwrites a secret that isn't needed any more, also where a compiler sees that nobody reads it afterwards.
void wipe(std::span<std::byte> secret);

}  // namespace cairn
