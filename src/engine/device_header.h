// The device header: one block at the head of the device and a copy of it half a MiB further.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/endian.h"
#include "base/id.h"
#include "base/status.h"
#include "engine/geometry.h"

namespace cairn::engine {

inline constexpr uint64_t kDeviceHeaderCopies[] = {0, kDeviceHeaderBytes / 2};  // offsets

struct DeviceHeader {
  static constexpr std::array<char, 8> kMagic = {'C', 'A', 'I', 'R', 'N', 'D', 'E', 'V'};
  static constexpr uint32_t kVersion = 1;
  enum State : uint32_t { formatting = 1, ready = 2 };

  // Magic, version, and a CRC of the block with `crc` as zero stay where they are in all versions.
  std::array<char, 8> magic;
  Le32 version;
  Le32 crc;
  Id128 device;
  Id128 cluster;
  Le64 device_bytes;
  Le32 shard_count;
  Le32 state;
  Le64 shard_bytes;
  Le64 journal_bytes;
  Le32 page_bytes;
  Le32 unit_bytes;
  std::array<uint8_t, kPageBytes - 88> reserved;
};
static_assert(sizeof(DeviceHeader) == kPageBytes);
static_assert(offsetof(DeviceHeader, device) == 16 && offsetof(DeviceHeader, device_bytes) == 48);
static_assert(offsetof(DeviceHeader, shard_bytes) == 64 && offsetof(DeviceHeader, reserved) == 88);

// What a block at a header's place is.
enum class HeaderKind : uint8_t { blank, valid, damaged, newer, foreign };

void seal(DeviceHeader& header);  // sets the CRC
HeaderKind classify(std::span<const std::byte, kPageBytes> block);
// Of a valid header: geometry that the device can have. corrupt or invalid_argument (the device is smaller now).
Result<DeviceGeometry> geometry_of(const DeviceHeader& header, uint64_t device_bytes);

}  // namespace cairn::engine
