// Layout: where an object's bytes lie: one run of data, or the runs of its parts one after the other, each cut into
// chunks. No data moves when parts become an object; this table is what a range is looked up in.
#pragma once

#include <cstdint>
#include <vector>

#include "object/records.h"

namespace cairn::object {

// Reads and writes go in pieces that end at multiples of this within a chunk.
inline constexpr uint32_t kPieceBytes = 1024 * 1024;
static_assert(engine::kChunkBytes % kPieceBytes == 0);

struct Piece {
  engine::ChunkId chunk;
  uint32_t offset = 0;
  uint32_t length = 0;
};

// The piece that starts `within` the data, at most `length` long.
Piece piece_at(DataId data, uint64_t within, uint64_t length);

class Layout {
 public:
  explicit Layout(DataRef data);
  explicit Layout(const PartTable& table);

  uint64_t size() const { return size_; }
  // The piece that starts at `position` and ends at `end` or before; position < end <= size().
  Piece at(uint64_t position, uint64_t end) const;

 private:
  struct Run {
    DataId id;
    uint64_t begin;  // Invariant: ascending, each where the one before ends; none is empty
  };
  std::vector<Run> runs_;
  uint64_t size_ = 0;
};

}  // namespace cairn::object
