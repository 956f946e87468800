#include "engine/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "engine/device_header.h"
#include "engine/sealed_block.h"
#include "engine/shard_format.h"

namespace cairn::engine {
namespace {

// What stands at a device's head, both copies considered.
struct Head {
  HeaderKind kind = HeaderKind::blank;
  std::optional<DeviceHeader> header;     // when valid
  uint32_t newer_version = 0;             // when newer
  std::optional<uint64_t> first_nonzero;  // when foreign
};

Task<Result<Head>> read_head(DeviceContext context) {
  Head head;
  if (context.device.size_bytes() < kDeviceHeaderBytes) co_return head;
  CO_TRY(auto memory, co_await context.pool.alloc(kDeviceHeaderBytes, mem::Purpose::internal));
  CO_TRY(co_await read(context.device, 0, memory));
  const auto bytes = memory.bytes();

  // The best of the copies speaks: a valid one, else the one that says most about what went wrong.
  int best = -1;
  static constexpr HeaderKind kByMerit[] = {HeaderKind::damaged, HeaderKind::newer, HeaderKind::valid};
  for (const uint64_t offset : kDeviceHeaderCopies) {
    const auto block = bytes.subspan(offset).first<kPageBytes>();
    const HeaderKind kind = classify(block);
    const auto merit = static_cast<int>(std::ranges::find(kByMerit, kind) - std::begin(kByMerit));
    if (merit == std::size(kByMerit) || merit <= best) continue;
    best = merit;
    head.kind = kind;
    const auto header = load<DeviceHeader>(block);
    if (kind == HeaderKind::newer) head.newer_version = header.version;
    if (kind == HeaderKind::valid) head.header = header;
  }
  if (best >= 0) co_return head;

  const auto nonzero = std::ranges::find_if(bytes, [](std::byte b) { return b != std::byte{0}; });
  if (nonzero != bytes.end()) {
    head.kind = HeaderKind::foreign;
    head.first_nonzero = static_cast<uint64_t>(nonzero - bytes.begin());
  }
  co_return head;
}

Error newer_error(const Head& head) {
  return Error(Errc::unsupported, fmt::format("the device was formatted by a newer release (format {}, this one knows "
                                              "up to {}): upgrade, nothing was written",
                                              head.newer_version, DeviceHeader::kVersion));
}

Error foreign_error(const Head& head) {
  return Error(Errc::already_exists,
               fmt::format("the device holds data that isn't Cairn's (first non-zero byte at offset {}): if nobody "
                           "needs it, clear its first MiB",
                           *head.first_nonzero));
}

Error damaged_error() {
  return Error(Errc::corrupt,
               "both copies of the device header are damaged: this was a Cairn device, look at its cables, cache and "
               "log before giving it up; to use it anew, clear its first MiB");
}

// Whether formatting may overwrite what is there.
Result<void> may_format(const Head& head) {
  switch (head.kind) {
    case HeaderKind::blank:
      return {};
    case HeaderKind::newer:
      return newer_error(head);
    case HeaderKind::foreign:
      return foreign_error(head);
    case HeaderKind::damaged:
      return damaged_error();
    case HeaderKind::valid:
      if (head.header->state == DeviceHeader::formatting) return {};
      return Error(Errc::already_exists,
                   fmt::format("the device is formatted already (device {}, cluster {}): open "
                               "it, or format with force to give up everything on it",
                               head.header->device.to_string(), head.header->cluster.to_string()));
  }
  return Error(Errc::unknown);
}

Task<Result<void>> write_header(DeviceContext context, DeviceHeader header) {
  seal(header);
  CO_TRY(auto memory, co_await context.pool.alloc(kPageBytes, mem::Purpose::internal));
  store(memory.writable_bytes(), header);
  // One after the other: a crash leaves at least one whole copy, of the old state or the new one.
  for (const uint64_t offset : kDeviceHeaderCopies) {
    CO_TRY(co_await write(context.device, offset, memory));
    CO_TRY(co_await flush(context.device));
  }
  co_return Result<void>{};
}

}  // namespace

ShardExtent DeviceInfo::extent(uint32_t shard) const {
  ASSERT(shard < geometry.shard_count);
  return {.device = device,
          .shard = shard,
          .offset = geometry.shard_offset(shard),
          .length = geometry.shard_bytes,
          .journal_bytes = geometry.journal_bytes};
}

Task<Result<DeviceInfo>> format_device(DeviceContext context, FormatOptions options, Rng& rng) {
  CO_TRY(const auto geometry, plan_device(context.device.size_bytes(), options.shards));
  CO_TRY(const auto head, co_await read_head(context));
  if (!options.force) CO_TRY(may_format(head));

  const DeviceInfo info{.device = Id128::random(rng), .cluster = options.cluster, .geometry = geometry};
  DeviceHeader header{};
  header.magic = DeviceHeader::kMagic;
  header.version = DeviceHeader::kVersion;
  header.device = info.device;
  header.cluster = info.cluster;
  header.device_bytes = context.device.size_bytes();
  header.shard_count = geometry.shard_count;
  header.state = DeviceHeader::formatting;
  header.shard_bytes = geometry.shard_bytes;
  header.journal_bytes = geometry.journal_bytes;
  header.page_bytes = kPageBytes;
  header.unit_bytes = kUnitBytes;
  CO_TRY(co_await write_header(context, header));
  for (uint32_t shard = 0; shard < geometry.shard_count; ++shard) {
    CO_TRY(co_await format_shard(context.device, context.pool, info.extent(shard)));
  }
  header.state = DeviceHeader::ready;
  CO_TRY(co_await write_header(context, header));
  co_return info;
}

Task<Result<DeviceInfo>> open_device(DeviceContext context) {
  CO_TRY(const auto head, co_await read_head(context));
  switch (head.kind) {
    case HeaderKind::blank:
      co_return Error(Errc::not_found, "the device is blank: format it first");
    case HeaderKind::newer:
      co_return newer_error(head);
    case HeaderKind::foreign:
      co_return foreign_error(head);
    case HeaderKind::damaged:
      co_return damaged_error();
    case HeaderKind::valid:
      break;
  }
  const DeviceHeader& header = *head.header;
  if (header.state != DeviceHeader::ready) {
    co_return Error(Errc::unavailable,
                    "formatting the device was interrupted, nothing was ever stored on it: format it again");
  }
  CO_TRY(const auto geometry, geometry_of(header, context.device.size_bytes()));
  co_return DeviceInfo{.device = header.device, .cluster = header.cluster, .geometry = geometry};
}

}  // namespace cairn::engine
