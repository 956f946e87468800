// The superblock says where a shard's journal begins. Four slots, two for each generation in turn:
//
//   generation 6 -> slots 0 and 1      generation 7 -> slots 2 and 3      generation 8 -> slots 0 and 1 ...
//
// A torn write spoils only the pair that is being written, and one rotten slot has a twin. That matters: the ring
// before the newest tail is overwritten, so falling back to an older generation for anything but a torn write would be
// wrong.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/endian.h"
#include "base/id.h"
#include "base/status.h"
#include "engine/block_device.h"
#include "engine/geometry.h"
#include "mem/pool.h"
#include "reactor/task.h"

namespace cairn::engine {

// In memory.
struct Superblock {
  uint64_t generation = 0;  // of this structure, from 1
  uint64_t epoch = 0;       // of the journal: grows at each opening; every batch carries it
  Lsn tail{};               // replay starts here; a batch's beginning
  Lsn life_begin{};         // batches from here on carry `epoch`, batches below a smaller one
  // Everything below was durable when this was written. Invariant: tail <= durable or clean; life_begin <= durable.
  Lsn durable{};
  uint64_t checkpoint = 0;  // the store has at least this checkpoint
  bool clean = false;       // nothing was written at or after `tail`
  // Nothing at or after `durable` was acknowledged, and what can be read there may be in the device's cache alone,
  // where no flush finds it any more: the one that should have taken it along has failed.
  bool fenced = false;
};

struct SuperblockOnDisk {
  static constexpr std::array<char, 8> kMagic = {'C', 'A', 'I', 'R', 'N', 'S', 'U', 'P'};
  static constexpr uint32_t kVersion = 1;
  static constexpr uint32_t kClean = 1;
  static constexpr uint32_t kFenced = 2;

  std::array<char, 8> magic;
  Le32 version;
  Le32 crc;
  Id128 device;
  Le32 shard;
  Le32 flags;
  Le64 generation;
  Le64 epoch;
  Le64 tail;
  Le64 life_begin;
  Le64 durable;
  Le64 checkpoint;
  Le64 shard_offset;
  Le64 shard_bytes;
  Le64 journal_bytes;
  std::array<uint8_t, kPageBytes - 112> reserved;
};
static_assert(sizeof(SuperblockOnDisk) == kPageBytes);
static_assert(offsetof(SuperblockOnDisk, generation) == 40 && offsetof(SuperblockOnDisk, shard_offset) == 88);
static_assert(offsetof(SuperblockOnDisk, reserved) == 112);

constexpr uint32_t superblock_slot(uint64_t generation, uint32_t copy) {
  return static_cast<uint32_t>(generation % 2) * 2 + copy;
}

void encode(const Superblock& superblock, const ShardExtent& extent, std::span<std::byte, kPageBytes> out);
// Errors: corrupt (CRC, or another shard's), unsupported (a newer version), not_found (never written).
Result<Superblock> decode(std::span<const std::byte, kPageBytes> block, const ShardExtent& extent);

// The one of the highest generation. Errors: corrupt when no slot is whole, unsupported, io_error.
Task<Result<Superblock>> load_superblock(BlockDevice& device, mem::Pool& pool, ShardExtent extent);
// Both copies, and a flush: durable when it returns ok, and so is every write that completed before the call.
Task<Result<void>> write_superblock(BlockDevice& device, mem::Pool& pool, ShardExtent extent, Superblock superblock);

}  // namespace cairn::engine
