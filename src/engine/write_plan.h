// How a chunk write's payload is kept: whole units go to fresh units of the data area at once and are never written
// again; what is left at both ends goes inline into the journal, and home at the next checkpoint.
//
//        offset                                                    offset + length
//          |  head: inline pages  |  unit  |  unit  | ... |  tail: inline pages  |
//                                 ^ unit boundary         ^ unit boundary
//
// A last unit that isn't full may be direct, too, when nothing of the chunk lies beyond the write: `extends`.
#pragma once

#include <cstdint>

#include "engine/geometry.h"

namespace cairn::engine {

struct WritePlan {
  uint32_t head_pages = 0;
  uint32_t unit_count = 0;
  uint32_t tail_pages = 0;

  uint32_t inline_pages() const { return head_pages + tail_pages; }
  bool operator==(const WritePlan&) const = default;
};

// `offset` a multiple of a page, length > 0. `extends`: the write ends at or beyond everything the chunk may hold when
// it is applied. Only from kDirectBytes of unit-aligned payload on are units used.
inline constexpr uint32_t kDirectBytes = kUnitBytes;
WritePlan plan_write(uint32_t offset, uint32_t length, bool extends);

// Whether a plan read from a device is one that plan_write can give.
bool is_possible(const WritePlan& plan, uint32_t offset, uint32_t length);

// Units whose contents the inline pages touch: each may need a unit at apply (at most 2).
uint32_t inline_units(const WritePlan& plan, uint32_t offset, uint32_t length);

}  // namespace cairn::engine
