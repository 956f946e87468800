// SoloLog: the log of a group with one replica, the trivial case of Raft: it leads in term 1 for ever, and what is
// durable is committed.
//
// Invariants: applied_ <= last_. Entries are appended, acknowledged and applied in index order. After a failed append
// nothing is proposed any more: the shard takes no more until it is opened anew. Reads go on, since what was applied is
// what was acknowledged. After a failed apply they don't.
#pragma once

#include <optional>

#include "engine/shard.h"
#include "reactor/loop.h"
#include "reactor/sync.h"
#include "replica/log.h"

namespace cairn::replica {

class SoloLog final : public Log {
 public:
  static constexpr engine::Term kTerm{1};

  // All outlive it.
  SoloLog(Loop& loop, engine::Shard& shard, engine::GroupId group, StateMachine& machine);

  // Applies what the shard found in its journal: all of it, since durable is committed. Once, before the first
  // proposal.
  Task<Result<void>> recover();

  bool leads() const override { return !failed_; }
  engine::Term term() const override { return kTerm; }
  engine::Index last_index() const override { return last_; }
  engine::Index applied_index() const override { return applied_; }
  Result<void> health() const override {
    if (failed_) return *failed_;
    return {};
  }
  Task<Result<void>> propose(engine::Entry entry, engine::Permit permit) override;
  bool may_read() const override { return !behind_; }
  Task<Result<void>> read_barrier(CancelToken cancel) override;

 private:
  Error fail(Error error);

  engine::Shard& shard_;
  engine::GroupId group_;
  StateMachine& machine_;
  engine::Index last_;
  engine::Index applied_;
  Semaphore applying_;  // one at a time; taken in index order, because appends are acknowledged in index order
  std::optional<Error> failed_;
  bool behind_ = false;  // something that was committed couldn't be applied
};

}  // namespace cairn::replica
