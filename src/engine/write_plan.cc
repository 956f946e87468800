#include "engine/write_plan.h"

#include <algorithm>

#include "base/assert.h"

namespace cairn::engine {

WritePlan plan_write(uint32_t offset, uint32_t length, bool extends) {
  ASSERT(offset % kPageBytes == 0 && length > 0);
  const uint32_t pages = pages_of(length);
  const uint32_t first = offset / kPageBytes;
  const uint32_t to_boundary = (kPagesPerUnit - first % kPagesPerUnit) % kPagesPerUnit;
  const WritePlan all_inline{.head_pages = pages, .unit_count = 0, .tail_pages = 0};
  if (to_boundary >= pages) return all_inline;

  const uint32_t aligned_bytes = length - to_boundary * kPageBytes;
  if (aligned_bytes < kDirectBytes) return all_inline;
  WritePlan plan{.head_pages = to_boundary, .unit_count = (pages - to_boundary) / kPagesPerUnit, .tail_pages = 0};
  plan.tail_pages = pages - to_boundary - plan.unit_count * kPagesPerUnit;
  if (plan.tail_pages > 0 && extends) {
    plan.tail_pages = 0;
    ++plan.unit_count;
  }
  return plan;
}

bool is_possible(const WritePlan& plan, uint32_t offset, uint32_t length) {
  if (offset % kPageBytes != 0 || length == 0 || length > kChunkBytes || offset > kChunkBytes - length) return false;
  return plan == plan_write(offset, length, true) || plan == plan_write(offset, length, false);
}

uint32_t inline_units(const WritePlan& plan, uint32_t offset, uint32_t length) {
  const uint32_t first = offset / kPageBytes;
  if (plan.unit_count > 0) return (plan.head_pages > 0 ? 1 : 0) + (plan.tail_pages > 0 ? 1 : 0);
  const uint32_t last = first + pages_of(length) - 1;
  return last / kPagesPerUnit - first / kPagesPerUnit + 1;
}

}  // namespace cairn::engine
