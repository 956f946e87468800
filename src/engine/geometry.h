// Where things lie on a device and in a shard. docs/on-disk-format.md describes the same byte by byte.
//
//   device   | header, 1 MiB | shard 0 | shard 1 | ...                         all shards are of one size
//   shard    | 4 superblocks, 64 KiB | journal ring | data area: units of 64 KiB |
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/strong.h"
#include "engine/shard.h"
#include "engine/types.h"

namespace cairn::engine {

// An allocation unit's number within its shard.
using Unit = Strong<uint32_t, struct UnitTag>;
inline constexpr Unit kNoUnit{UINT32_MAX};
// A page's place in the data area: unit * kPagesPerUnit + page.
using HomePage = Strong<uint64_t, struct HomePageTag>;

inline constexpr uint32_t kPagesPerUnit = kUnitBytes / kPageBytes;
inline constexpr uint32_t kPagesPerChunk = kChunkBytes / kPageBytes;
inline constexpr uint32_t kUnitsPerChunk = kChunkBytes / kUnitBytes;
static_assert(kPagesPerUnit == 16, "a unit's pages are kept in 16-bit masks");

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kDeviceHeaderBytes = kMiB;
inline constexpr uint64_t kMinDeviceBytes = 256 * kMiB;
inline constexpr uint64_t kMinShardBytes = 64 * kMiB;
inline constexpr uint64_t kMinJournalBytes = 16 * kMiB;
inline constexpr uint64_t kMaxJournalBytes = 256 * kMiB;
inline constexpr uint64_t kSuperblockRegionBytes = 64 * 1024;
inline constexpr uint32_t kSuperblockSlots = 4;
inline constexpr uint64_t kSuperblockSpacing = kSuperblockRegionBytes / kSuperblockSlots;
inline constexpr uint32_t kMaxShards = 1024;

constexpr uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }
constexpr uint32_t pages_of(uint64_t bytes) { return static_cast<uint32_t>((bytes + kPageBytes - 1) / kPageBytes); }

constexpr HomePage home_page(Unit unit, uint32_t page) { return HomePage(uint64_t{unit.value} * kPagesPerUnit + page); }

struct DeviceGeometry {
  uint32_t shard_count = 0;
  uint64_t shard_bytes = 0;  // a multiple of 1 MiB
  uint64_t journal_bytes = 0;

  uint64_t shard_offset(uint32_t shard) const { return kDeviceHeaderBytes + shard * shard_bytes; }
  uint64_t end() const { return shard_offset(shard_count); }
};

// Cuts a device of `device_bytes` into at most `wanted_shards`, fewer when they would be smaller than kMinShardBytes.
// invalid_argument when it is too small for one, or for its journal to make sense.
Result<DeviceGeometry> plan_device(uint64_t device_bytes, uint32_t wanted_shards);

struct ShardLayout {
  // Errors: invalid_argument when the extent can't hold a shard.
  static Result<ShardLayout> of(const ShardExtent& extent);

  uint64_t superblock_offset(uint32_t slot) const { return superblocks_offset + slot * kSuperblockSpacing; }
  uint64_t unit_offset(Unit unit) const { return data_offset + uint64_t{unit.value} * kUnitBytes; }
  uint64_t page_offset(HomePage page) const { return data_offset + page.value * kPageBytes; }

  uint64_t superblocks_offset = 0;
  uint64_t journal_offset = 0;
  uint64_t journal_bytes = 0;
  uint64_t data_offset = 0;
  uint32_t unit_count = 0;
};

}  // namespace cairn::engine
