// Journal: writes batches to the ring and says when entries are durable.
//
//   submit(op) ─▶ queue ─▶ batch ─▶ device write ─┐
//                                                 ├─▶ written ─▶ flush ─▶ acknowledged, in order of position
//   payload writes to units (if any) ─────────────┘
//
// One batch takes everything that was submitted since the last one, of all groups (group commit). Up to
// kMaxWritesInFlight batches are being written while a flush runs; the next flush covers all that were written before
// it began. A batch counts as written only when the payload of its large writes is, too, and a flush covers only a
// prefix of batches, so what is acknowledged is always a prefix of the journal.
//
// Invariants: durable <= next, and next - tail <= capacity. (A checkpoint may move the tail past a mark that isn't
// durable.)
//
// A failed write or flush fences the journal: nothing more is written, and everything on its way ends with the error.
#pragma once

#include <array>
#include <coroutine>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "engine/block_device.h"
#include "engine/journal_format.h"
#include "engine/metrics.h"
#include "engine/pending_entry.h"
#include "mem/pool.h"
#include "reactor/loop.h"
#include "reactor/sync.h"
#include "reactor/task.h"

namespace cairn::engine {

class Journal {
 public:
  // Told when the journal is fenced, at once and only the first time.
  class Listener {
   public:
    virtual void on_fenced(const Error& why) = 0;
    virtual void on_durable() = 0;  // durable() moved

   protected:
    ~Listener() = default;
  };

  struct Config {
    ShardLayout layout;
    JournalIdentity identity;
    Duration idle_mark_delay = milliseconds(20);
  };

  class Op;

  Journal(Loop& loop, mem::Pool& pool, BlockDevice& device, ShardMetrics& metrics, Listener& listener, Config config);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  // Where writing goes on after a replay: everything in [tail, next) is durable.
  void start(Lsn tail, Lsn next, uint64_t epoch);
  // Writes batches until stop() has been called and everything has ended. Spawn it once, after start().
  Task<void> run();
  void stop();

  // In order. The op, its entry and its payload stay in place until `co_await op` has returned. `promised`: journal
  // bytes promised for it before, at least what it needs when it is alone in its batch.
  void submit(Op& op, uint64_t promised);

  // Room is promised before an entry gets its index, so that a submitted one always has it. True when `bytes` more can
  // be promised and `keep` are left.
  bool has_room(uint64_t bytes, uint64_t keep) const { return used_bytes() + promised_ + bytes + keep <= capacity(); }
  // What could be promised now if `keep` were to be left.
  uint64_t room(uint64_t keep) const {
    const uint64_t taken = used_bytes() + promised_ + keep;
    return taken < capacity() ? capacity() - taken : 0;
  }
  void promise(uint64_t bytes) { promised_ += bytes; }
  void take_back(uint64_t bytes);

  void fence(Error why);
  const std::optional<Error>& fenced() const { return fenced_; }

  uint64_t epoch() const { return epoch_; }
  Lsn tail() const { return tail_; }
  Lsn durable() const { return durable_; }
  // The position of the batch that will be made next.
  Lsn next() const { return next_; }
  uint64_t capacity() const { return config_.layout.journal_bytes; }
  // What ordinary writers leave to those who free space.
  uint64_t reserve() const { return capacity() / 16; }
  uint64_t used_bytes() const { return next_ - tail_; }
  // Everything below was covered by a checkpoint; the space is free at once.
  void set_tail(Lsn tail);

  // Which batches hold entries that are not applied yet.
  void add_replayed(Lsn batch) { ++unapplied_[batch]; }
  void entry_applied(Lsn batch);
  // Everything in batches below this is applied.
  Lsn first_unapplied() const { return unapplied_.empty() ? next_ : unapplied_.begin()->first; }

  // Where position `lsn` lies on the device.
  static uint64_t device_offset(const ShardLayout& layout, Lsn lsn) {
    return layout.journal_offset + lsn.value % layout.journal_bytes;
  }

 private:
  struct Batch;

  // A batch without entries that says how far the journal is durable. Without it, rot in the last batches before a
  // quiet time could be taken for a torn tail.
  bool wants_mark() const;
  std::unique_ptr<Batch> take_batch();
  Task<void> write(std::unique_ptr<Batch> batch);
  void submit_write(Batch& batch);
  void on_written(Batch& batch, Errc result);
  void on_payload_written(Op& op, Errc result);
  void try_flush();
  void on_flushed(Errc result);
  void finish(Op& op, Errc result);
  void end_failed();

  Loop& loop_;
  mem::Pool& pool_;
  BlockDevice& device_;
  ShardMetrics& metrics_;
  Listener& listener_;
  const Config config_;

  Lsn tail_{};
  Lsn next_{};
  Lsn durable_{};
  Lsn marked_{};  // the durable position that the last batch carried
  uint64_t epoch_ = 0;
  uint64_t promised_ = 0;
  std::optional<Error> fenced_;
  bool stopping_ = false;
  bool mark_due_ = false;

  std::deque<Op*> queue_;
  std::deque<std::unique_ptr<Batch>> batches_;  // ascending, adjacent; those not durable yet
  size_t writing_ = 0;                          // of batches_, those whose own write is under way
  size_t flushing_ = 0;                         // the first so many of batches_ are covered by the flush under way
  struct Flush : IoRequest {
    Journal* journal = nullptr;
  };
  Flush flush_;
  std::map<Lsn, uint32_t> unapplied_;  // entries of each batch; none is 0
  Event changed_;                      // for run()
  Timer mark_timer_;
};

// One entry on its way. Payload writes to units are begun before submit() and may end at any time.
class Journal::Op {
 public:
  Op(Journal& journal, PendingEntry& entry) : journal_(journal), entry_(entry) {}
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;
  ~Op() { ASSERT(writes_ == 0); }

  PendingEntry& entry() { return entry_; }
  void begin_writes(uint32_t n) { writes_ += n; }
  void end_write(Errc result) { journal_.on_payload_written(*this, result); }

  // co_await op: Result<void>.
  bool await_ready() const { return done_; }
  void await_suspend(std::coroutine_handle<> handle) { handle_ = handle; }
  Result<void> await_resume() const {
    if (result_ != Errc::ok) return *journal_.fenced_;
    return {};
  }

 private:
  friend class Journal;

  Journal& journal_;
  PendingEntry& entry_;
  uint32_t writes_ = 0;
  Batch* batch_ = nullptr;
  uint64_t promised_ = 0;
  bool done_ = false;
  Errc result_ = Errc::ok;
  std::coroutine_handle<> handle_;
};

}  // namespace cairn::engine
