#include "base/id.h"

#include "base/hex.h"

namespace cairn {

std::string Id128::to_string() const { return to_hex(std::as_bytes(std::span(bytes))); }

std::optional<Id128> Id128::parse(std::string_view hex) {
  Id128 id;
  if (hex.size() != 2 * id.bytes.size()) return std::nullopt;
  if (!from_hex(hex, std::as_writable_bytes(std::span(id.bytes)))) return std::nullopt;
  return id;
}

Id128 Id128::random(Rng& rng) {
  Id128 id;
  rng.fill(std::as_writable_bytes(std::span(id.bytes)));
  return id;
}

}  // namespace cairn
