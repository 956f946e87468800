#include "engine/geometry.h"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::engine {

Result<DeviceGeometry> plan_device(uint64_t device_bytes, uint32_t wanted_shards) {
  if (device_bytes < kMinDeviceBytes) {
    return Error(Errc::invalid_argument,
                 fmt::format("the device has {} MiB, and the least is {} MiB: use a larger device or file",
                             device_bytes / kMiB, kMinDeviceBytes / kMiB));
  }
  if (wanted_shards == 0 || wanted_shards > kMaxShards) {
    return Error(Errc::invalid_argument,
                 fmt::format("{} shards are wanted, and 1 to {} are possible", wanted_shards, kMaxShards));
  }
  const uint64_t space = device_bytes - kDeviceHeaderBytes;
  DeviceGeometry geometry;
  geometry.shard_count = static_cast<uint32_t>(std::min<uint64_t>(wanted_shards, space / kMinShardBytes));
  geometry.shard_bytes = space / geometry.shard_count / kMiB * kMiB;
  const uint64_t sixteenth = geometry.shard_bytes / 16 / kMiB * kMiB;
  geometry.journal_bytes = std::clamp(sixteenth, kMinJournalBytes, kMaxJournalBytes);
  // Unit numbers have 32 bits and home pages count in 64: 256 TiB a shard.
  if (geometry.shard_bytes / kUnitBytes >= kNoUnit.value) {
    return Error(Errc::invalid_argument, "the device is too large for so few shards: ask for more shards");
  }
  return geometry;
}

Result<ShardLayout> ShardLayout::of(const ShardExtent& extent) {
  if (extent.offset % kPageBytes != 0 || extent.length % kMiB != 0 || extent.journal_bytes % kMiB != 0 ||
      extent.journal_bytes < kMinJournalBytes || extent.journal_bytes > kMaxJournalBytes ||
      extent.length < extent.journal_bytes + kMiB || extent.length / kUnitBytes >= kNoUnit.value) {
    return Error(Errc::invalid_argument, fmt::format("shard {}: offset {}, length {} and journal {} make no shard",
                                                     extent.shard, extent.offset, extent.length, extent.journal_bytes));
  }
  ShardLayout layout;
  layout.superblocks_offset = extent.offset;
  layout.journal_offset = extent.offset + kSuperblockRegionBytes;
  layout.journal_bytes = extent.journal_bytes;
  layout.data_offset = layout.journal_offset + layout.journal_bytes;
  layout.unit_count = static_cast<uint32_t>((extent.offset + extent.length - layout.data_offset) / kUnitBytes);
  return layout;
}

}  // namespace cairn::engine
