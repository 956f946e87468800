// Blocks of one page that carry their own CRC32C: computed with the field itself as zero.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/endian.h"
#include "engine/types.h"

namespace cairn::engine {

// The CRC of `bytes` with the four bytes at `crc_offset` taken as zero.
inline uint32_t crc_without_field(std::span<const std::byte> bytes, size_t crc_offset) {
  static constexpr std::byte kZero[sizeof(Le32)] = {};
  uint32_t crc = crc32c(bytes.first(crc_offset));
  crc = crc32c(std::span(kZero), crc);
  return crc32c(bytes.subspan(crc_offset + sizeof(Le32)), crc);
}

// A fixed structure out of bytes that were read: no alignment is assumed.
template <typename T>
T load(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  ASSERT(bytes.size() >= sizeof(T));
  T value;
  // cairn-allow(memcpy): metadata of a fixed layout, never payload
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

template <typename T>
void store(std::span<std::byte> out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  ASSERT(out.size() >= sizeof(T));
  // cairn-allow(memcpy): metadata of a fixed layout, never payload
  std::memcpy(out.data(), &value, sizeof value);
}

}  // namespace cairn::engine
