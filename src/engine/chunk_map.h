// The chunk map: what every chunk of the shard consists of. All of it is in memory (72 bytes a unit, that is 1.1 GiB
// per TiB of full units); checkpoints carry it to the store as one record a chunk (chunk_record.h).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/geometry.h"
#include "engine/types.h"

namespace cairn::engine {

// A unit of a chunk. A page is a hole (reads as zeroes), present (its bytes match its CRC, wherever they are), or lost
// (rot destroyed the only copy: it can't be read until it is written again).
// Invariants: present & lost == 0; unit == kNoUnit exactly when both are 0.
struct UnitSlot {
  Unit unit = kNoUnit;
  uint16_t present = 0;
  uint16_t lost = 0;
  std::array<uint32_t, kPagesPerUnit> crc{};

  bool mapped() const { return unit != kNoUnit; }
  bool is_present(uint32_t page) const { return (present >> page & 1) != 0; }
  bool is_lost(uint32_t page) const { return (lost >> page & 1) != 0; }
};
static_assert(sizeof(UnitSlot) == 72);

struct Chunk {
  GroupId group{};
  uint32_t size = 0;
  Index last_change{};
  std::vector<UnitSlot> slots;  // by unit of the chunk; shorter when the rest are holes

  UnitSlot& slot(uint32_t index) {
    if (index >= slots.size()) slots.resize(index + 1);
    return slots[index];
  }
  const UnitSlot* find_slot(uint32_t index) const { return index < slots.size() ? &slots[index] : nullptr; }
};

// Ordered, because chunks are listed in order and nothing may depend on a hash's order.
using ChunkMap = std::map<ChunkId, Chunk>;

}  // namespace cairn::engine
