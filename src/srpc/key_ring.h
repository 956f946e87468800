// The cluster's keys, as a server and a channel are given them.
//
//   KeyRing ring({*SharedKey::parse(current)});       // one for each thread that has servers or channels
//   srpc::Server server(loop, registry, pool, {.keys = &ring});
//   srpc::Channel channel(loop, metrics, connector, {.keys = &ring});
//
// Every node is server and client, so keys are changed in three steps, each on all nodes before the next one begins:
//   ring.replace({old, fresh});   // accepts both, proves with the old one
//   ring.replace({fresh, old});   // accepts both, proves with the fresh one
//   ring.replace({fresh});        // the old one is worth nothing any more
// Connections that are open stay open: a key is looked at when a connection begins, and never again.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "base/sha256.h"

namespace cairn::srpc {

// 32 secret bytes, overwritten when the object goes. There is no way to print one.
class SharedKey {
 public:
  static constexpr size_t kBytes = 32;

  explicit SharedKey(const std::array<std::byte, kBytes>& bytes) : bytes_(bytes) {}
  SharedKey(const SharedKey&) = default;
  SharedKey& operator=(const SharedKey&) = default;
  ~SharedKey() { wipe(bytes_); }

  // 64 hexadecimal digits; nullopt for anything else. The text is the caller's to wipe.
  static std::optional<SharedKey> parse(std::string_view hex);
  // `rng` must be fit for secrets: SystemRng.
  static SharedKey random(Rng& rng);

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::array<std::byte, kBytes> bytes_;
};

// The keys that are accepted; the first one is that with which this side proves itself. Never empty: to have no key is
// to have no ring. Belongs to the thread of those who look at it.
class KeyRing {
 public:
  // Bounds what a wrong proof costs: each key is tried.
  static constexpr size_t kMaxKeys = 4;

  explicit KeyRing(std::vector<SharedKey> keys) { replace(std::move(keys)); }
  KeyRing(const KeyRing&) = default;
  KeyRing& operator=(const KeyRing&) = default;

  // From the next connection on.
  void replace(std::vector<SharedKey> keys);

  const SharedKey& proving() const { return keys_.front(); }
  std::span<const SharedKey> accepted() const { return keys_; }

 private:
  std::vector<SharedKey> keys_;  // Invariant: 1 <= size <= kMaxKeys
};

}  // namespace cairn::srpc
