// The bitmap of a shard's allocation units. Next fit: allocation goes on where it left off, so that what is written
// together lies together and freed units rest for a while.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/geometry.h"

namespace cairn::engine {

// Adjacent units.
struct UnitRun {
  Unit first{};
  uint32_t count = 0;
  bool operator==(const UnitRun&) const = default;
};

class UnitAllocator {
 public:
  explicit UnitAllocator(uint32_t unit_count);

  uint32_t free_count() const { return free_; }
  uint32_t total() const { return total_; }
  bool in_use(Unit unit) const { return (words_[unit.value / 64] >> (unit.value % 64) & 1) != 0; }

  // `count` <= free_count(). In one run when one is found nearby, else in as few as it takes on the way.
  void allocate(uint32_t count, std::vector<UnitRun>& out);
  Unit allocate_one();
  // The unit is free.
  void mark_used(Unit unit);
  void free(Unit unit);

 private:
  // The first free unit at or after `from`, or total_.
  uint32_t next_free(uint32_t from) const;
  // The first unit in use at or after `from`, at most `limit`.
  uint32_t next_used(uint32_t from, uint32_t limit) const;
  void set_used(uint32_t first, uint32_t count);

  uint32_t total_;
  uint32_t free_;
  uint32_t cursor_ = 0;
  std::vector<uint64_t> words_;  // a set bit: in use; bits beyond total_ are set
};

}  // namespace cairn::engine
