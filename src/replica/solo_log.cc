#include "replica/solo_log.h"

#include <fmt/core.h>

#include <utility>

#include "base/assert.h"
#include "base/log.h"

namespace cairn::replica {

SoloLog::SoloLog(Loop& loop, engine::Shard& shard, engine::GroupId group, StateMachine& machine)
    : shard_(shard), group_(group), machine_(machine), applying_(loop, 1) {}

Error SoloLog::fail(Error error) {
  if (!failed_) {
    LOG(error, "group {} stops: {}", group_.value, error.to_string());
    failed_ = error;
  }
  return error;
}

Task<Result<void>> SoloLog::recover() {
  ASSERT(last_ == engine::Index(0));
  for (const engine::Entry& entry : shard_.recovered()) {
    if (entry.group != group_) continue;
    ASSERT(entry.index > applied_);
    Result<void> applied = co_await machine_.apply({.index = entry.index, .kind = entry.kind, .body = entry.body});
    if (!applied) {
      co_return fail(std::move(applied).error().with_context(fmt::format("entry {}", entry.index.value)));
    }
    applied_ = entry.index;
  }
  last_ = shard_.last_index(group_);
  // Entries that the checkpoint and the store cover are not among the recovered ones.
  ASSERT(applied_ <= last_);
  applied_ = last_;
  co_return Result<void>{};
}

Task<Result<void>> SoloLog::propose(engine::Entry entry, engine::Permit permit) {
  if (failed_) co_return Error(Errc::unavailable, failed_->to_string());
  // From here to the append nothing may wait: the order of the indexes is the order of the appends.
  entry.group = group_;
  entry.term = kTerm;
  entry.index = ++last_;
  Committed committed{.index = entry.index, .kind = entry.kind, .body = {}};
  if (entry.kind == engine::EntryKind::kv_batch) committed.body = entry.body;
  Result<void> appended = co_await shard_.append(std::move(entry), std::move(permit));
  if (!appended) co_return fail(std::move(appended).error());

  (void)co_await applying_.take();
  Result<void> applied;
  if (failed_) {
    applied = *failed_;  // something before it couldn't be applied
  } else {
    ASSERT(committed.index == applied_ + 1);
    const engine::Index index = committed.index;
    applied = co_await machine_.apply(std::move(committed));
    if (applied) {
      applied_ = index;
    } else {
      behind_ = true;
      applied = fail(std::move(applied).error().with_context(fmt::format("entry {}", index.value)));
    }
  }
  applying_.give();
  co_return applied;
}

Task<Result<void>> SoloLog::read_barrier(CancelToken /*cancel*/) {
  if (behind_) co_return *failed_;
  co_return Result<void>{};
}

}  // namespace cairn::replica
