// What a shard does by itself: checkpoints when something calls for one, memory given back, closing.
#include "engine/shard_impl.h"

namespace cairn::engine {
namespace {

constexpr Duration kRetryAfter = milliseconds(500);

}  // namespace

void ShardImpl::on_fenced(const Error& /*why*/) {
  admission_.changed();
  checkpoint_wanted_.set();
}

void ShardImpl::on_read_done() { recycler_.wake(); }

void ShardImpl::on_units_freed() {
  state_.update_space_metrics();
  admission_.changed();
}

void ShardImpl::on_checkpoint(bool /*succeeded*/) {
  recycler_.wake();
  state_.update_space_metrics();
  admission_.changed();
}

bool ShardImpl::reclaim(size_t bytes) noexcept { return state_.cache.evict(bytes) || state_.dirty.shed(bytes) > 0; }

void ShardImpl::want_checkpoint() {
  if (checkpointer_.running()) return;
  checkpoints_wanted_ = std::max(checkpoints_wanted_, checkpoints_begun_ + 1);
  checkpoint_wanted_.set();
}

void ShardImpl::note_change() {
  if (!interval_timer_.armed() && !closing_) {
    state_.context.loop.arm_in(interval_timer_, state_.options.checkpoint_interval);
  }
}

// A checkpoint now would move the tail by enough to be worth it, or give units back that are needed.
bool ShardImpl::checkpoint_frees_something() const {
  const uint64_t gain = journal_.first_unapplied() - journal_.tail();
  if (journal_.used_bytes() > journal_.capacity() / 2 && gain > journal_.capacity() / 4) return true;
  // Another half gathers while this one is written home, and no page has to be read back from the journal for that.
  if (state_.dirty.memory_bytes() > state_.dirty.memory_limit() / 2 && gain > journal_.capacity() / 8) return true;
  const Space& space = state_.space;
  const uint64_t low = space.total() / 8;
  const bool is_low = space.free() < space.reserved() + low;
  return is_low && space.freeing() > low / 4 && space.would_release(journal_.first_unapplied());
}

void ShardImpl::maybe_checkpoint() {
  if (!checkpointer_.running() && checkpoint_frees_something()) want_checkpoint();
}

Task<void> ShardImpl::checkpoint_loop() {
  while (!closing_ || checkpoints_wanted_ > checkpoints_begun_) {
    if (checkpointer_.has_word_to_leave()) {
      co_await checkpointer_.leave_word();
      continue;
    }
    if (checkpoints_wanted_ <= checkpoints_begun_) {
      checkpoint_wanted_.reset();
      (void)co_await checkpoint_wanted_.wait();
      continue;
    }
    ++checkpoints_begun_;
    state_.context.loop.disarm(interval_timer_);
    last_checkpoint_ = co_await checkpointer_.run();
    checkpoints_done_ = checkpoints_begun_;
    checkpoint_done_.set();
    if (checkpointer_.is_idle() || health().code() != Errc::ok) continue;
    note_change();
    // The store is in trouble; those who wait have been told.
    if (!last_checkpoint_ && !closing_) (void)co_await state_.context.loop.sleep(kRetryAfter, scope_.token());
    maybe_checkpoint();
  }
}

Task<Result<void>> ShardImpl::checkpoint() {
  const uint64_t mine = checkpoints_begun_ + 1;
  if (closing_) co_return Error(Errc::closed, "the shard is closing");
  checkpoints_wanted_ = std::max(checkpoints_wanted_, mine);
  checkpoint_wanted_.set();
  while (checkpoints_done_ < mine) {
    checkpoint_done_.reset();
    (void)co_await checkpoint_done_.wait();
  }
  co_return last_checkpoint_;
}

Task<void> ShardImpl::close() {
  ASSERT(!closing_);
  admission_.close();
  if (appending_ > 0) (void)co_await appended_.wait();
  if (health() && !checkpointer_.is_idle()) (void)co_await checkpoint();
  closing_ = true;
  state_.context.loop.disarm(interval_timer_);
  checkpoint_wanted_.set();
  journal_.stop();
  recycler_.stop();
  scope_.cancel();
  co_await scope_.join();
  if (checkpointer_.has_word_to_leave()) co_await checkpointer_.leave_word();
  // Nothing is under way now. The next opening needs no search for the journal's end when there is nothing in it.
  const bool empty = journal_.first_unapplied() == journal_.next();
  if (health() && empty && checkpointer_.covers_all_applied()) {
    (void)co_await checkpointer_.write_superblock(journal_.next(), state_.superblock.checkpoint, true);
  }
  reader_.refuse();
  state_.cache.clear();  // before: a read may be waiting for memory
  co_await reader_.stop();
}

}  // namespace cairn::engine
