#include "replica/lease_table.h"

#include <algorithm>

namespace cairn::replica {

Result<void> LeaseTable::renew(const Id128& what, Duration time) {
  if (time.ns <= 0 || time > kMaxTime) return Error(Errc::invalid_argument, "a lease takes up to 60 seconds");
  const Time until = clock_.now() + time;
  if (const auto found = until_.find(what); found != until_.end()) {
    found->second = std::max(found->second, until);
    return {};
  }
  if (until_.size() >= std::min(drop_at_, kMaxLeases)) drop_expired();
  if (until_.size() >= kMaxLeases) return Error(Errc::busy, "too many leases; try again later");
  until_.emplace(what, until);
  return {};
}

bool LeaseTable::held(const Id128& what) const {
  const auto found = until_.find(what);
  return found != until_.end() && found->second > clock_.now();
}

void LeaseTable::drop_expired() {
  const Time now = clock_.now();
  std::erase_if(until_, [now](const auto& entry) { return entry.second <= now; });
  drop_at_ = std::max<size_t>(64, 2 * until_.size());
}

}  // namespace cairn::replica
