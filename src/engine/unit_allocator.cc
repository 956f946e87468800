#include "engine/unit_allocator.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace cairn::engine {
namespace {

// How many runs that are too short are passed by in the hope of one that isn't. Beyond it, splitting a write costs less
// than the search.
constexpr int kRunsToTry = 32;

}  // namespace

UnitAllocator::UnitAllocator(uint32_t unit_count)
    : total_(unit_count), free_(unit_count), words_((uint64_t{unit_count} + 63) / 64, 0) {
  ASSERT(unit_count > 0);
  if (unit_count % 64 != 0) words_.back() = ~uint64_t{0} << (unit_count % 64);
}

uint32_t UnitAllocator::next_free(uint32_t from) const {
  if (from >= total_) return total_;
  size_t word = from / 64;
  uint64_t candidates = ~words_[word] & (~uint64_t{0} << (from % 64));
  while (candidates == 0) {
    if (++word == words_.size()) return total_;
    candidates = ~words_[word];
  }
  return static_cast<uint32_t>(word * 64 + static_cast<unsigned>(std::countr_zero(candidates)));
}

uint32_t UnitAllocator::next_used(uint32_t from, uint32_t limit) const {
  uint32_t at = from;
  while (at < limit) {
    const uint64_t used = words_[at / 64] >> (at % 64);
    if (used != 0) return std::min(limit, at + static_cast<unsigned>(std::countr_zero(used)));
    at += 64 - at % 64;
  }
  return limit;
}

void UnitAllocator::set_used(uint32_t first, uint32_t count) {
  for (uint32_t unit = first; unit < first + count; ++unit) mark_used(Unit(unit));
}

void UnitAllocator::allocate(uint32_t count, std::vector<UnitRun>& out) {
  ASSERT(count <= free_);
  for (int tries = 0; count > 0;) {
    uint32_t first = next_free(cursor_);
    if (first == total_) {
      // Once around: whatever was passed by is taken in pieces now.
      tries = tries < kRunsToTry ? tries + kRunsToTry / 2 : kRunsToTry;
      cursor_ = 0;
      continue;
    }
    const auto limit = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{first} + count, total_));
    const uint32_t end = next_used(first, limit);
    if (end - first < count && tries < kRunsToTry) {
      ++tries;
      cursor_ = end;
      continue;
    }
    set_used(first, end - first);
    out.push_back({Unit(first), end - first});
    count -= end - first;
    cursor_ = end;
  }
}

Unit UnitAllocator::allocate_one() {
  ASSERT(free_ > 0);
  uint32_t unit = next_free(cursor_);
  if (unit == total_) unit = next_free(0);
  mark_used(Unit(unit));
  cursor_ = unit + 1;
  return Unit(unit);
}

void UnitAllocator::mark_used(Unit unit) {
  ASSERT(unit.value < total_);
  uint64_t& word = words_[unit.value / 64];
  const uint64_t bit = uint64_t{1} << (unit.value % 64);
  ASSERT((word & bit) == 0);
  word |= bit;
  --free_;
}

void UnitAllocator::free(Unit unit) {
  ASSERT(unit.value < total_);
  uint64_t& word = words_[unit.value / 64];
  const uint64_t bit = uint64_t{1} << (unit.value % 64);
  ASSERT((word & bit) != 0);
  word &= ~bit;
  ++free_;
}

}  // namespace cairn::engine
