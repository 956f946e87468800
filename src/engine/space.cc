#include "engine/space.h"

#include <algorithm>

#include "base/assert.h"

namespace cairn::engine {

bool Space::try_reserve(uint64_t count, uint64_t keep) {
  if (free() < reserved_ + count + keep) return false;
  reserved_ += count;
  return true;
}

void Space::unreserve(uint64_t count) {
  ASSERT(count <= reserved_);
  reserved_ -= count;
}

void Space::take(uint32_t count, std::vector<UnitRun>& out) {
  unreserve(count);
  allocator_.allocate(count, out);
  pending_ += count;
}

Unit Space::take_home() {
  unreserve(1);
  ++used_;
  return allocator_.allocate_one();
}

bool Space::claim_used(Unit unit) {
  if (unit.value >= total() || allocator_.in_use(unit)) return false;
  allocator_.mark_used(unit);
  ++used_;
  return true;
}

bool Space::claim_pending(Unit unit) {
  if (unit.value >= total() || allocator_.in_use(unit)) return false;
  allocator_.mark_used(unit);
  ++pending_;
  return true;
}

void Space::hold(Unit unit, Lsn by) {
  if (unit.value >= total() || allocator_.in_use(unit)) return;
  allocator_.mark_used(unit);
  ++freeing_;
  superseded_[by].push_back(unit);
}

void Space::pending_to_used(uint64_t count) {
  ASSERT(count <= pending_);
  pending_ -= count;
  used_ += count;
}

void Space::supersede_used(Unit unit, Lsn by) {
  ASSERT(used_ > 0 && allocator_.in_use(unit));
  --used_;
  ++freeing_;
  superseded_[by].push_back(unit);
}

void Space::supersede_pending(Unit unit, Lsn by) {
  ASSERT(pending_ > 0 && allocator_.in_use(unit));
  --pending_;
  ++freeing_;
  superseded_[by].push_back(unit);
}

uint64_t Space::enter_read() {
  ++reads_[generation_];
  return generation_;
}

void Space::leave_read(uint64_t ticket) {
  const auto found = reads_.find(ticket);
  ASSERT(found != reads_.end());
  if (--found->second == 0) reads_.erase(found);
}

void Space::release_below(Lsn tail) {
  for (auto at = superseded_.begin(); at != superseded_.end() && at->first < tail; at = superseded_.erase(at)) {
    released_.push_back({std::move(at->second), generation_});
  }
  ++generation_;
}

std::vector<Unit> Space::take_released(size_t limit) {
  const uint64_t oldest_read = reads_.empty() ? UINT64_MAX : reads_.begin()->first;
  std::vector<Unit> units;
  while (!released_.empty() && units.size() < limit && released_.front().after < oldest_read) {
    auto& from = released_.front().units;
    const size_t n = std::min(limit - units.size(), from.size());
    units.insert(units.end(), from.end() - static_cast<ptrdiff_t>(n), from.end());
    from.resize(from.size() - n);
    if (from.empty()) released_.pop_front();
  }
  return units;
}

void Space::free_unit(Unit unit) {
  ASSERT(freeing_ > 0);
  --freeing_;
  allocator_.free(unit);
}

}  // namespace cairn::engine
