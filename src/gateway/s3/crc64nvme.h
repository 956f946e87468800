// CRC-64/NVME (NVM Command Set specification, 64-bit guard; polynomial AD93D23594C93659, reflected, all ones in and
// out). isa-l of this age has other 64-bit polynomials only, so this folds with PCLMULQDQ itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn::s3 {

// Pieces as with cairn::crc32c: crc64nvme(b, crc64nvme(a)) is the checksum of a followed by b.
uint64_t crc64nvme(std::span<const std::byte> bytes, uint64_t previous = 0) noexcept;

}  // namespace cairn::s3
