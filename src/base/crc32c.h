// CRC32C (Castagnoli, reflected, initial value and final XOR all ones: RFC 3720 section 12.1), the checksum of
// everything that leaves memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn {

// The checksum of `bytes`. To go on over a second piece, pass the first piece's result as `previous`:
// crc32c(b, crc32c(a)) == crc32c(a followed by b).
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t previous = 0) noexcept;
inline uint32_t crc32c(const void* data, size_t size, uint32_t previous = 0) noexcept {
  return crc32c(std::span(static_cast<const std::byte*>(data), size), previous);
}

}  // namespace cairn
