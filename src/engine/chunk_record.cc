#include "engine/chunk_record.h"

#include <bit>
#include <cstring>
#include <span>

#include "engine/sealed_block.h"
#include "engine/shard.h"

namespace cairn::engine {
namespace {

template <typename T>
void append(std::string& out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// All values have `version` first and `crc` at offset 4.
constexpr size_t kCrcOffset = 4;
static_assert(offsetof(ChunkRecordOnDisk, crc) == kCrcOffset && offsetof(MarkOnDisk, crc) == kCrcOffset &&
              offsetof(IdentityOnDisk, crc) == kCrcOffset);

void seal(std::string& value) {
  const Le32 crc(crc_without_field(bytes_of(value), kCrcOffset));
  value.replace(kCrcOffset, sizeof crc, reinterpret_cast<const char*>(&crc), sizeof crc);
}

template <typename T>
Result<T> open(std::string_view value) {
  if (value.size() < sizeof(T)) return Error(Errc::corrupt, "a value in the store is too short");
  const auto bytes = bytes_of(value);
  if (load<Le32>(bytes.subspan(kCrcOffset)) != crc_without_field(bytes, kCrcOffset)) {
    return Error(Errc::corrupt, "a value in the store does not match its checksum");
  }
  if (load<Le16>(bytes) > T::kVersion) {
    return Error(Errc::unsupported, "the store was written by a newer release: upgrade, nothing was written");
  }
  return load<T>(bytes);
}

Result<UnitSlot> decode_slot(const SlotOnDisk& disk, uint32_t unit_count) {
  UnitSlot slot;
  slot.unit = Unit(disk.unit);
  slot.present = disk.present;
  slot.lost = disk.lost;
  if (slot.unit.value >= unit_count || (slot.present & slot.lost) != 0 || (slot.present | slot.lost) == 0) {
    return Error(Errc::corrupt, "a chunk's map in the store is impossible");
  }
  return slot;
}

}  // namespace

std::string key_prefix(KeySpace space) { return {kEngineKeyByte, static_cast<char>(space)}; }

std::string chunk_key(ChunkId chunk) {
  return key_prefix(KeySpace::chunk).append(reinterpret_cast<const char*>(chunk.bytes.data()), chunk.bytes.size());
}

std::string mark_key(KeySpace space, GroupId group) {
  std::string key = key_prefix(space);
  for (int shift = 24; shift >= 0; shift -= 8) key.push_back(static_cast<char>(group.value >> shift & 0xff));
  return key;
}

std::optional<ChunkId> parse_chunk_key(std::string_view key) {
  const std::string prefix = key_prefix(KeySpace::chunk);
  ChunkId chunk;
  if (!key.starts_with(prefix) || key.size() != prefix.size() + chunk.bytes.size()) return std::nullopt;
  return load<ChunkId>(bytes_of(key.substr(prefix.size())));
}

std::optional<GroupId> parse_mark_key(KeySpace space, std::string_view key) {
  const std::string prefix = key_prefix(space);
  if (!key.starts_with(prefix) || key.size() != prefix.size() + sizeof(uint32_t)) return std::nullopt;
  uint32_t group = 0;
  for (const char c : key.substr(prefix.size())) group = group << 8 | static_cast<uint8_t>(c);
  return GroupId(group);
}

std::string encode_chunk(const Chunk& chunk) {
  std::string value;
  ChunkRecordOnDisk disk{};
  disk.version = ChunkRecordOnDisk::kVersion;
  disk.group = chunk.group.value;
  disk.size = chunk.size;
  disk.last_change = chunk.last_change.value;
  append(value, disk);
  uint16_t slots = 0;
  for (size_t i = 0; i < chunk.slots.size(); ++i) {
    const UnitSlot& slot = chunk.slots[i];
    if (!slot.mapped()) continue;
    ++slots;
    SlotOnDisk slot_disk{};
    slot_disk.index = static_cast<uint8_t>(i);
    slot_disk.present = slot.present;
    slot_disk.lost = slot.lost;
    slot_disk.unit = slot.unit.value;
    append(value, slot_disk);
    for (uint32_t page = 0; page < kPagesPerUnit; ++page) {
      if (slot.is_present(page)) append(value, Le32(slot.crc[page]));
    }
  }
  const Le16 slot_count(slots);
  value.replace(offsetof(ChunkRecordOnDisk, slot_count), sizeof slot_count, reinterpret_cast<const char*>(&slot_count),
                sizeof slot_count);
  seal(value);
  return value;
}

Result<Chunk> decode_chunk(std::string_view value, uint32_t unit_count) {
  TRY(const auto disk, open<ChunkRecordOnDisk>(value));
  Chunk chunk;
  chunk.group = GroupId(disk.group);
  chunk.size = disk.size;
  chunk.last_change = Index(disk.last_change);
  const Error impossible(Errc::corrupt, "a chunk's map in the store is impossible");
  if (chunk.size > kChunkBytes || disk.slot_count > kUnitsPerChunk) return impossible;
  auto rest = bytes_of(value).subspan(sizeof disk);
  uint32_t next_index = 0;
  for (uint32_t i = 0; i < disk.slot_count; ++i) {
    if (rest.size() < sizeof(SlotOnDisk)) return impossible;
    const auto slot_disk = load<SlotOnDisk>(rest);
    rest = rest.subspan(sizeof slot_disk);
    if (slot_disk.index < next_index || slot_disk.index >= kUnitsPerChunk) return impossible;
    next_index = slot_disk.index + 1;
    TRY(UnitSlot slot, decode_slot(slot_disk, unit_count));
    if (rest.size() < static_cast<size_t>(std::popcount(slot.present)) * sizeof(Le32)) return impossible;
    for (uint32_t page = 0; page < kPagesPerUnit; ++page) {
      if (!slot.is_present(page)) continue;
      slot.crc[page] = load<Le32>(rest);
      rest = rest.subspan(sizeof(Le32));
    }
    chunk.slot(slot_disk.index) = slot;
  }
  if (!rest.empty()) return impossible;
  return chunk;
}

std::string encode_mark(Index index) {
  std::string value;
  MarkOnDisk disk{};
  disk.version = MarkOnDisk::kVersion;
  disk.index = index.value;
  append(value, disk);
  seal(value);
  return value;
}

Result<Index> decode_mark(std::string_view value) {
  TRY(const auto disk, open<MarkOnDisk>(value));
  return Index(disk.index);
}

std::string encode_identity(const StoreIdentity& identity) {
  std::string value;
  IdentityOnDisk disk{};
  disk.version = IdentityOnDisk::kVersion;
  disk.device = identity.device;
  disk.shard = identity.shard;
  disk.checkpoint = identity.checkpoint;
  append(value, disk);
  seal(value);
  return value;
}

Result<StoreIdentity> decode_identity(std::string_view value) {
  TRY(const auto disk, open<IdentityOnDisk>(value));
  return StoreIdentity{.device = disk.device, .shard = disk.shard, .checkpoint = disk.checkpoint};
}

}  // namespace cairn::engine
