// For tests: keys that differ by a number, and what is said with them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "srpc/channel.h"
#include "srpc/handshake.h"
#include "srpc/key_ring.h"
#include "srpc/testing/methods.h"

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

// A call on a channel that has been turned away once. `options.backoff_min` is longer than a test.
inline Task<Result<Message<EchoBody>>> call_once_turned_away(Channel* channel) {
  Loop& loop = channel->loop();
  while (channel->last_error() == "not tried yet") (void)co_await loop.sleep(milliseconds(1));
  co_return co_await channel->call<Echo>({.meta = {1, 0}}, {.deadline = loop.now() + milliseconds(1)});
}

}  // namespace cairn::srpc::testing
