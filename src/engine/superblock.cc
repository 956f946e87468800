#include "engine/superblock.h"

#include <fmt/format.h>

#include <optional>

#include "engine/sealed_block.h"

namespace cairn::engine {

void encode(const Superblock& superblock, const ShardExtent& extent, std::span<std::byte, kPageBytes> out) {
  SuperblockOnDisk disk{};
  disk.magic = SuperblockOnDisk::kMagic;
  disk.version = SuperblockOnDisk::kVersion;
  disk.device = extent.device;
  disk.shard = extent.shard;
  disk.flags = (superblock.clean ? SuperblockOnDisk::kClean : 0) | (superblock.fenced ? SuperblockOnDisk::kFenced : 0);
  disk.generation = superblock.generation;
  disk.epoch = superblock.epoch;
  disk.tail = superblock.tail.value;
  disk.life_begin = superblock.life_begin.value;
  disk.durable = superblock.durable.value;
  disk.checkpoint = superblock.checkpoint;
  disk.shard_offset = extent.offset;
  disk.shard_bytes = extent.length;
  disk.journal_bytes = extent.journal_bytes;
  disk.crc = crc_without_field(std::as_bytes(std::span(&disk, 1)), offsetof(SuperblockOnDisk, crc));
  store(out, disk);
}

Result<Superblock> decode(std::span<const std::byte, kPageBytes> block, const ShardExtent& extent) {
  const auto disk = load<SuperblockOnDisk>(block);
  if (disk.magic != SuperblockOnDisk::kMagic) return Errc::not_found;
  if (disk.crc != crc_without_field(block, offsetof(SuperblockOnDisk, crc))) return Errc::corrupt;
  if (disk.version > SuperblockOnDisk::kVersion) {
    return Error(Errc::unsupported, fmt::format("shard {} was last written by a newer release (format {}, this one "
                                                "knows up to {}): upgrade, nothing was written",
                                                extent.shard, disk.version.get(), SuperblockOnDisk::kVersion));
  }
  if (disk.device != extent.device || disk.shard != extent.shard || disk.shard_offset != extent.offset ||
      disk.shard_bytes != extent.length || disk.journal_bytes != extent.journal_bytes) {
    return Error(Errc::corrupt, fmt::format("shard {}: a superblock of another shard or device", extent.shard));
  }
  const Superblock superblock{.generation = disk.generation,
                              .epoch = disk.epoch,
                              .tail = Lsn(disk.tail),
                              .life_begin = Lsn(disk.life_begin),
                              .durable = Lsn(disk.durable),
                              .checkpoint = disk.checkpoint,
                              .clean = (disk.flags & SuperblockOnDisk::kClean) != 0,
                              .fenced = (disk.flags & SuperblockOnDisk::kFenced) != 0};
  for (const Lsn lsn : {superblock.tail, superblock.life_begin, superblock.durable}) {
    // A bound far above anything that can be written keeps sums of positions from wrapping.
    if (lsn.value % kPageBytes != 0 || lsn.value > uint64_t{1} << 62) return Errc::corrupt;
  }
  return superblock;
}

namespace {

// Which slots can be read. An error when both copies of a generation can't: it may be the newest.
Task<Result<std::array<bool, kSuperblockSlots>>> read_slots(BlockDevice& device, const ShardLayout& layout,
                                                            mem::Buf memory) {
  std::array<bool, kSuperblockSlots> readable;
  readable.fill(true);
  if (co_await read(device, layout.superblocks_offset, memory)) co_return readable;
  for (uint32_t slot = 0; slot < kSuperblockSlots; ++slot) {
    auto page = memory.slice(slot * kSuperblockSpacing, kPageBytes);
    const auto done = co_await read_patiently(device, layout.superblock_offset(slot), std::move(page));
    readable[slot] = done.has_value();
    if (!done && slot % 2 == 1 && !readable[slot - 1]) co_return done.error();
  }
  co_return readable;
}

}  // namespace

Task<Result<Superblock>> load_superblock(BlockDevice& device, mem::Pool& pool, ShardExtent extent) {
  CO_TRY(const auto layout, ShardLayout::of(extent));
  CO_TRY(auto memory, co_await pool.alloc(kSuperblockRegionBytes, mem::Purpose::internal));
  CO_TRY(const auto readable, co_await read_slots(device, layout, memory));
  std::optional<Superblock> newest;
  for (uint32_t slot = 0; slot < kSuperblockSlots; ++slot) {
    if (!readable[slot]) continue;
    const auto block = memory.bytes().subspan(slot * kSuperblockSpacing).first<kPageBytes>();
    auto superblock = decode(block, extent);
    if (superblock.code() == Errc::unsupported) co_return std::move(superblock).error();
    // The only whole copy of the newest one may be the one that the device can't read now.
    if (superblock.code() == Errc::corrupt && !readable[slot ^ 1]) {
      co_return Error(Errc::io_error, fmt::format("shard {}: one copy of a superblock is damaged, and the device can't "
                                                  "read the other",
                                                  extent.shard));
    }
    if (superblock && (!newest || superblock->generation > newest->generation)) newest = *superblock;
  }
  if (!newest) {
    co_return Error(Errc::corrupt, fmt::format("shard {}: none of the four superblocks is readable", extent.shard));
  }
  co_return *newest;
}

Task<Result<void>> write_superblock(BlockDevice& device, mem::Pool& pool, ShardExtent extent, Superblock superblock) {
  CO_TRY(const auto layout, ShardLayout::of(extent));
  CO_TRY(auto memory, co_await pool.alloc(kPageBytes, mem::Purpose::internal));
  encode(superblock, extent, memory.writable_bytes().first<kPageBytes>());
  for (uint32_t copy = 0; copy < 2; ++copy) {
    const uint32_t slot = superblock_slot(superblock.generation, copy);
    CO_TRY(co_await write(device, layout.superblock_offset(slot), memory));
  }
  co_return co_await flush(device);
}

}  // namespace cairn::engine
