// Sealed bytes: what a small record wears when it leaves memory: its type, its version and a CRC32C.
//
//   0   12 bytes SealHeader
//   12  the record's own encoding
//
// The type keeps a record of one kind from being read as another that happens to parse.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/endian.h"
#include "base/status.h"

namespace cairn::control {

struct SealHeader {
  static constexpr uint16_t kMagic = 0x5243;  // "CR"

  Le16 magic;
  uint8_t type = 0;
  uint8_t version = 0;
  Le32 length;  // of the record
  Le32 crc;     // of everything, with this field as zero
};
static_assert(sizeof(SealHeader) == 12);

std::string seal(uint8_t type, uint8_t version, std::string_view record);
// The record inside `bytes`, which outlive it. `what` names it in errors: corrupt (damaged, or of another type),
// unsupported (a version above `newest`: written by a newer release).
Result<std::string_view> unseal(uint8_t type, uint8_t newest, std::string_view what, std::string_view bytes);

}  // namespace cairn::control
