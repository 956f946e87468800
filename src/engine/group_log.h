// A group's part of the journal: what is appended and not yet applied.
#pragma once

#include <deque>
#include <map>

#include "base/assert.h"
#include "engine/pending_entry.h"
#include "engine/types.h"

namespace cairn::engine {

// Invariant: pending holds the indexes applied + 1 ... last, without gaps.
struct GroupLog {
  Index last{};
  Index applied{};
  std::deque<PendingEntry> pending;  // entries stay in place until they are applied

  PendingEntry& push() {
    ++last;
    return pending.emplace_back();
  }
  void pop() {
    ASSERT(!pending.empty());
    ++applied;
    pending.pop_front();
  }
};

using GroupLogs = std::map<GroupId, GroupLog>;

}  // namespace cairn::engine
