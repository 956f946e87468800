#include "engine/device_header.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/sealed_block.h"

namespace cairn::engine {

void seal(DeviceHeader& header) {
  header.crc = crc_without_field(std::as_bytes(std::span(&header, 1)), offsetof(DeviceHeader, crc));
}

HeaderKind classify(std::span<const std::byte, kPageBytes> block) {
  const auto header = load<DeviceHeader>(block);
  if (header.magic != DeviceHeader::kMagic) {
    const bool zero = std::ranges::all_of(block, [](std::byte b) { return b == std::byte{0}; });
    return zero ? HeaderKind::blank : HeaderKind::foreign;
  }
  if (header.crc != crc_without_field(block, offsetof(DeviceHeader, crc))) return HeaderKind::damaged;
  if (header.version > DeviceHeader::kVersion) return HeaderKind::newer;
  return header.version == 0 ? HeaderKind::damaged : HeaderKind::valid;
}

Result<DeviceGeometry> geometry_of(const DeviceHeader& header, uint64_t device_bytes) {
  const DeviceGeometry geometry{
      .shard_count = header.shard_count, .shard_bytes = header.shard_bytes, .journal_bytes = header.journal_bytes};
  // The CRC was right, so anything odd here was written so: by a build with other constants or a bug.
  if (header.page_bytes != kPageBytes || header.unit_bytes != kUnitBytes || geometry.shard_count == 0 ||
      geometry.shard_count > kMaxShards || geometry.shard_bytes == 0 || geometry.shard_bytes % kMiB != 0 ||
      geometry.shard_bytes > header.device_bytes || geometry.end() > header.device_bytes) {
    return Error(Errc::corrupt, "the device header describes a geometry that this build doesn't have");
  }
  if (device_bytes < geometry.end()) {
    return Error(Errc::invalid_argument,
                 fmt::format("the device has {} bytes and had {} when it was formatted: it was cut; restore its size, "
                             "nothing was written",
                             device_bytes, header.device_bytes.get()));
  }
  return geometry;
}

}  // namespace cairn::engine
