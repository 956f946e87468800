// For tests: keys that differ by a number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "srpc/handshake.h"
#include "srpc/key_ring.h"

namespace cairn::srpc::testing {

// first, first + 1, ...
inline SharedKey key_of(uint8_t first) {
  std::array<std::byte, SharedKey::kBytes> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(first + i);
  return SharedKey(bytes);
}

inline std::vector<SharedKey> keys_of(const std::vector<uint8_t>& firsts) {
  std::vector<SharedKey> keys;
  for (const uint8_t first : firsts) keys.push_back(key_of(first));
  return keys;
}

// What a client says by hand.
inline std::vector<std::byte> hello_with_key(uint16_t poll_group = kAnyPollGroup) {
  HelloBody hello;
  hello.version_min = kVersionMin;
  hello.version_max = kVersionMax;
  hello.poll_group = poll_group;
  hello.auth = static_cast<uint8_t>(Auth::hmac_sha256);
  hello.nonce.fill(5);
  const auto bytes = std::as_bytes(std::span(&hello, 1));
  return {bytes.begin(), bytes.end()};
}
inline std::vector<std::byte> client_proof(const SharedKey& key, std::span<const std::byte> hello,
                                           std::span<const std::byte> challenge) {
  const Sha256 proof = SessionKey(key, handshake_transcript(hello, challenge)).client_proof();
  return {proof.begin(), proof.end()};
}

}  // namespace cairn::srpc::testing
