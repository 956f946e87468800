// 128-bit identifiers of clusters, devices, chunks, objects.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/rng.h"

namespace cairn {

// 16 opaque bytes, ordered bytewise. All zero means "none".
struct Id128 {
  std::array<uint8_t, 16> bytes{};

  auto operator<=>(const Id128&) const = default;
  bool is_zero() const { return *this == Id128{}; }
  // 32 lower-case hexadecimal digits.
  std::string to_string() const;
  static std::optional<Id128> parse(std::string_view hex);
  static Id128 random(Rng& rng);
};
static_assert(sizeof(Id128) == 16);

}  // namespace cairn

template <>
struct std::hash<cairn::Id128> {
  size_t operator()(const cairn::Id128& id) const noexcept {
    // Identifiers are random in at least one half; the multiplication mixes counters in the other.
    uint64_t halves[2];
    std::memcpy(halves, id.bytes.data(), sizeof halves);
    return (halves[0] ^ (halves[1] * 0x9e3779b97f4a7c15)) * 0xff51afd7ed558ccd;
  }
};
