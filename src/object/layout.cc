#include "object/layout.h"

#include <algorithm>

#include "base/assert.h"

namespace cairn::object {

Layout::Layout(DataRef data) : size_(data.size) {
  if (data.size > 0) runs_.push_back({.id = data.id, .begin = 0});
}

Layout::Layout(const PartTable& table) {
  runs_.reserve(table.parts.size());
  for (const TablePart& part : table.parts) {
    if (part.data.size == 0) continue;
    runs_.push_back({.id = part.data.id, .begin = size_});
    size_ += part.data.size;
  }
}

Piece piece_at(DataId data, uint64_t within, uint64_t length) {
  return {.chunk = data.chunk(static_cast<uint32_t>(within / engine::kChunkBytes)),
          .offset = static_cast<uint32_t>(within % engine::kChunkBytes),
          .length = static_cast<uint32_t>(std::min<uint64_t>(kPieceBytes - within % kPieceBytes, length))};
}

Piece Layout::at(uint64_t position, uint64_t end) const {
  ASSERT(position < end);
  ASSERT(end <= size_);
  const auto next = std::ranges::upper_bound(runs_, position, {}, &Run::begin);
  ASSERT(next != runs_.begin());
  const Run& run = *std::prev(next);
  const uint64_t run_end = next == runs_.end() ? size_ : next->begin;
  return piece_at(run.id, position - run.begin, std::min(run_end, end) - position);
}

}  // namespace cairn::object
