// LeaseTable: who is still using what, for a while. Kept in memory by a group's leader; a new leader or a restart
// begins with an empty one and says for how long it has been looking, so that nobody takes "not held" for more than it
// is.
#pragma once

#include <map>

#include "base/id.h"
#include "base/status.h"
#include "base/time.h"

namespace cairn::replica {

class LeaseTable {
 public:
  static constexpr size_t kMaxLeases = 65'536;
  static constexpr Duration kMaxTime = seconds(60);

  explicit LeaseTable(const Clock& clock) : clock_(clock), since_(clock.now()) {}

  // Held until `time` from now, or as long as before if that is longer. Errors: invalid_argument (longer than
  // kMaxTime), busy (too many).
  Result<void> renew(const Id128& what, Duration time);
  bool held(const Id128& what) const;
  Duration memory() const { return clock_.now() - since_; }
  size_t size() const { return until_.size(); }

 private:
  void drop_expired();

  const Clock& clock_;
  Time since_;
  std::map<Id128, Time> until_;
  size_t drop_at_ = 64;  // so that dropping costs little on average
};

}  // namespace cairn::replica
