// Space: the states of allocation units, and their sums.
//
//              take            applied               superseded             checkpoint, readers gone
//    free ───────────▶ pending ───────▶ used ──────────────────▶ freeing ──────────────────────────▶ free
//      └───────────── take_home ───────▶
//
// total = free + pending + used + freeing, always. Units that an admitted entry may need are reserved: they stay free,
// but nobody else is promised them.
//
// When a unit may be used again (rule 4 of the design): the entry that superseded it is applied, and a checkpoint whose
// tail lies beyond that entry's batch is durable, so no replay will ever look at it; no read of it is under way; and,
// since its own record lies below the tail, too, no log needs it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "engine/geometry.h"
#include "engine/unit_allocator.h"

namespace cairn::engine {

class Space {
 public:
  Space(uint32_t unit_count, uint32_t reserve_units) : allocator_(unit_count), reserve_units_(reserve_units) {}

  uint64_t total() const { return allocator_.total(); }
  uint64_t free() const { return allocator_.free_count(); }
  uint64_t pending() const { return pending_; }
  uint64_t used() const { return used_; }
  uint64_t freeing() const { return freeing_; }
  uint64_t reserved() const { return reserved_; }
  uint32_t reserve_units() const { return reserve_units_; }

  // Promises `count` units when `keep` unpromised ones are left then.
  bool try_reserve(uint64_t count, uint64_t keep);
  // At a replay: what was promised before the crash fits, though entries that were applied then are counted twice now.
  void reserve_again(uint64_t count) { reserved_ += count; }
  void unreserve(uint64_t count);

  // Out of reserved units.
  void take(uint32_t count, std::vector<UnitRun>& out);
  Unit take_home();
  // At opening. False when the unit is in use already: the map contradicts itself.
  bool claim_used(Unit unit);
  bool claim_pending(Unit unit);
  // At opening, after all claims: a unit that a record names and nothing uses any more isn't given to others as long as
  // that record, in the batch at `by`, can be replayed.
  void hold(Unit unit, Lsn by);

  void pending_to_used(uint64_t count);
  // By an entry in the batch at `by`.
  void supersede_used(Unit unit, Lsn by);
  void supersede_pending(Unit unit, Lsn by);

  // Reads: a unit that was mapped when a read entered isn't freed before the read leaves.
  uint64_t enter_read();
  void leave_read(uint64_t ticket);

  // A checkpoint with this tail is durable: units superseded by batches below it wait for readers only.
  void release_below(Lsn tail);
  // The next units that may be used again, at most `limit`; they still count as freeing until free_unit().
  std::vector<Unit> take_released(size_t limit);
  void free_unit(Unit unit);
  // A checkpoint with this tail would release something.
  bool would_release(Lsn tail) const { return !superseded_.empty() && superseded_.begin()->first < tail; }

 private:
  struct Released {
    std::vector<Unit> units;
    uint64_t after;  // reads with tickets up to this may use them
  };

  UnitAllocator allocator_;
  const uint32_t reserve_units_;
  uint64_t reserved_ = 0;
  uint64_t pending_ = 0;
  uint64_t used_ = 0;
  uint64_t freeing_ = 0;
  std::map<Lsn, std::vector<Unit>> superseded_;
  std::deque<Released> released_;  // `after` ascends
  // Reads under way, by the release that came before them.
  uint64_t generation_ = 1;
  std::map<uint64_t, uint64_t> reads_;
};

}  // namespace cairn::engine
