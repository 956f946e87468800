// What the engine keeps in the store. Values are little-endian, versioned, and carry a CRC32C; keys sort as the things
// do.
//
//   00 'c' chunk(16)      a chunk's map
//   00 'g' group(4, BE)   the group's last index whose effects on chunks are in the map records
//   00 'k' group(4, BE)   the group's last index whose effects on keys are in the store
//   00 's'                whose store this is, and the last checkpoint it has
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/endian.h"
#include "base/status.h"
#include "engine/chunk_map.h"
#include "engine/types.h"

namespace cairn::engine {

struct ChunkRecordOnDisk {
  static constexpr uint16_t kVersion = 1;
  Le16 version;
  Le16 slot_count;
  Le32 crc;  // of the whole value, this field as zero
  Le32 group;
  Le32 size;
  Le64 last_change;
};
static_assert(sizeof(ChunkRecordOnDisk) == 24);

// Followed by Le32 crc[popcount(present)], lowest page first.
struct SlotOnDisk {
  uint8_t index;
  uint8_t reserved;
  Le16 present;
  Le16 lost;
  Le16 reserved2;
  Le32 unit;
};
static_assert(sizeof(SlotOnDisk) == 12);

struct MarkOnDisk {
  static constexpr uint16_t kVersion = 1;
  Le16 version;
  Le16 reserved;
  Le32 crc;
  Le64 index;
};
static_assert(sizeof(MarkOnDisk) == 16);

struct IdentityOnDisk {
  static constexpr uint16_t kVersion = 1;
  Le16 version;
  Le16 reserved;
  Le32 crc;
  Id128 device;
  Le32 shard;
  Le32 reserved2;
  Le64 checkpoint;
};
static_assert(sizeof(IdentityOnDisk) == 40);

enum class KeySpace : char { chunk = 'c', group_mark = 'g', kv_mark = 'k', identity = 's' };
std::string key_prefix(KeySpace space);
std::string chunk_key(ChunkId chunk);
std::string mark_key(KeySpace space, GroupId group);
// Nothing when it is no such key.
std::optional<ChunkId> parse_chunk_key(std::string_view key);
std::optional<GroupId> parse_mark_key(KeySpace space, std::string_view key);

std::string encode_chunk(const Chunk& chunk);
// Errors (all decoders): corrupt, unsupported (a newer version).
Result<Chunk> decode_chunk(std::string_view value, uint32_t unit_count);

std::string encode_mark(Index index);
Result<Index> decode_mark(std::string_view value);

struct StoreIdentity {
  Id128 device;
  uint32_t shard = 0;
  uint64_t checkpoint = 0;
};
std::string encode_identity(const StoreIdentity& identity);
Result<StoreIdentity> decode_identity(std::string_view value);

}  // namespace cairn::engine
