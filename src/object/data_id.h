// DataId: the name of a run of bytes that one writer wrote: an object's or a part's. Never used twice, so a chunk's
// bytes never change once they are referenced, and a reader can't get another object's bytes.
//
//   0    4 bytes  session of the writer (session.h), big-endian
//   4    8 bytes  counter within the session, big-endian
//
// Its chunks are named by these 12 bytes and the chunk's number. What a dead session left behind is therefore one range
// of chunk ids.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string_view>

#include "engine/types.h"

namespace cairn::object {

struct DataId {
  std::array<uint8_t, 12> bytes{};

  auto operator<=>(const DataId&) const = default;
  bool is_zero() const { return *this == DataId{}; }

  static DataId make(uint32_t session, uint64_t counter) {
    DataId id{};
    for (size_t i = 0; i < 4; ++i) id.bytes[i] = static_cast<uint8_t>(session >> (24 - 8 * i));
    for (size_t i = 0; i < 8; ++i) id.bytes[4 + i] = static_cast<uint8_t>(counter >> (56 - 8 * i));
    return id;
  }
  static DataId of_chunk(engine::ChunkId chunk) {
    DataId id{};
    for (size_t i = 0; i < id.bytes.size(); ++i) id.bytes[i] = chunk.bytes[i];
    return id;
  }
  uint32_t session() const {
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
  }
  engine::ChunkId chunk(uint32_t number) const {
    engine::ChunkId id;
    for (size_t i = 0; i < bytes.size(); ++i) id.bytes[i] = bytes[i];
    for (size_t i = 0; i < 4; ++i) id.bytes[12 + i] = static_cast<uint8_t>(number >> (24 - 8 * i));
    return id;
  }
  // What a reader holds a lease on.
  Id128 lease() const { return chunk(0); }
  std::string_view view() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};
static_assert(sizeof(DataId) == 12);

struct DataRef {
  DataId id{};
  uint64_t size = 0;

  bool operator==(const DataRef&) const = default;
  uint32_t chunk_count() const { return static_cast<uint32_t>((size + engine::kChunkBytes - 1) / engine::kChunkBytes); }
};

}  // namespace cairn::object
