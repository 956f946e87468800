#include "srpc/key_ring.h"

#include <utility>

#include "base/assert.h"
#include "base/hex.h"

namespace cairn::srpc {

std::optional<SharedKey> SharedKey::parse(std::string_view hex) {
  SharedKey key({});
  if (!from_hex(hex, key.bytes_)) return std::nullopt;
  return key;
}

SharedKey SharedKey::random(Rng& rng) {
  SharedKey key({});
  rng.fill(key.bytes_);
  return key;
}

void KeyRing::replace(std::vector<SharedKey> keys) {
  ASSERT(!keys.empty() && keys.size() <= kMaxKeys);
  keys_ = std::move(keys);
}

}  // namespace cairn::srpc
