// Freezing: the way to look at many records (is the bucket empty? which parts are there?) and then decide, while
// commits that would change them have to wait.
//
//   freeze   puts z/ id with a nonce. Commits have "z/ id is absent" as a condition.
//   ...look, as long as it takes...
//   decide   a batch with "z/ id is still mine" as a condition, which also deletes z/
//   or thaw  deletes z/, if it is still mine
//
// Whoever froze may have crashed, so nobody waits forever: who finds the same freeze in place for kFreezePatience
// breaks it, and a freezer that was only slow sees its decision fail and starts again.
#pragma once

#include <string>

#include "object/commit.h"
#include "object/core.h"

namespace cairn::object {

inline constexpr Duration kFreezePatience = seconds(2);

class Freeze {
 public:
  // `id`: the bucket or upload, whose group is `group`.
  Freeze(Core& core, engine::GroupId group, Id128 id) : core_(core), group_(group), id_(id) {}

  // Takes it, after waiting for others. `guard` names the key that must be there. None: taken; Guard: what `guard` says
  // is missing.
  Task<Result<std::optional<Guard>>> take(Guard guard, std::string guard_key, CallContext context);
  // Adds "still mine" and the end of the freeze to a decision.
  void end_with(Commit& commit) const;
  // Gives up, best effort.
  Task<void> thaw(CallContext context);

 private:
  Core& core_;
  engine::GroupId group_;
  Id128 id_;
  std::string nonce_;
};

// Returns when `id` isn't frozen any more.
Task<Result<void>> wait_until_thawed(Core& core, engine::GroupId group, Id128 id, CallContext context);
// The condition for commits.
void require_not_frozen(Commit& commit, Id128 id);

}  // namespace cairn::object
