// The shard, put together from its parts (shard_state.h has the picture).
#pragma once

#include <vector>

#include "engine/admission.h"
#include "engine/applier.h"
#include "engine/checkpointer.h"
#include "engine/journal.h"
#include "engine/reader.h"
#include "engine/recycler.h"
#include "engine/shard.h"
#include "engine/shard_state.h"
#include "mem/pool.h"
#include "reactor/scope.h"

namespace cairn::engine {

class ShardImpl final : public Shard,
                        private Journal::Listener,
                        private Reader::Listener,
                        private Admission::Listener,
                        private Checkpointer::Listener,
                        private Recycler::Listener,
                        private mem::Reclaimer {
 public:
  ShardImpl(const Context& context, const ShardExtent& extent, const ShardLayout& layout, const ShardOptions& options);
  ~ShardImpl() override;

  const std::vector<Entry>& recovered() const override { return recovered_; }
  void forget_recovered() override { recovered_ = {}; }
  Index last_index(GroupId group) const override;
  Index applied_index(GroupId group) const override;

  Task<Result<Permit>> admit(const Entry& entry, mem::Purpose purpose, CancelToken token) override;
  Task<Result<void>> append(Entry entry, Permit permit) override;
  using Shard::apply;
  void apply(GroupId group, Index index) override;
  kv::Mutation applied_mark(GroupId group, Index index) const override;

  Task<Result<mem::BufChain>> read(ChunkId chunk, uint32_t offset, uint32_t length, CancelToken token,
                                   mem::Purpose purpose) override {
    return reader_.read(chunk, offset, length, token, purpose);
  }
  std::optional<ChunkStat> stat(ChunkId chunk) const override;
  std::vector<ChunkId> list(ChunkId after, size_t limit) const override;

  SpaceUsage usage() const override;
  Result<void> health() const override;
  void fence(Error why) override { journal_.fence(std::move(why)); }

  Task<Result<void>> checkpoint() override;
  Task<void> close() override;

 private:
  friend class Recovery;
  class UnitWrites;

  // Journal, Reader, Admission, Checkpointer, Recycler, Pool:
  void on_fenced(const Error& why) override;
  void on_durable() override {}
  void on_read_done() override;
  void want_checkpoint() override;
  void on_checkpoint(bool succeeded) override;
  void on_checkpoint_progress() override { admission_.changed(); }
  void on_units_freed() override;
  bool reclaim(size_t bytes) noexcept override;

  // After recovery.
  Task<Result<void>> start();
  void prepare_write(PendingEntry& pending, mem::BufChain payload, Need need, std::vector<UnitRun>& runs);
  uint32_t furthest_end(const GroupLog& log, ChunkId chunk) const;
  void note_change();
  void maybe_checkpoint();
  bool checkpoint_frees_something() const;
  Task<void> checkpoint_loop();

  ShardState state_;
  Journal journal_;
  Applier applier_;
  Reader reader_;
  Admission admission_;
  Checkpointer checkpointer_;
  Recycler recycler_;
  std::vector<Entry> recovered_;

  // Checkpoints are numbered by their start; whoever wants one waits for the next that hasn't begun.
  uint64_t checkpoints_wanted_ = 0;
  uint64_t checkpoints_begun_ = 0;
  uint64_t checkpoints_done_ = 0;
  Result<void> last_checkpoint_;
  Event checkpoint_wanted_;
  Event checkpoint_done_;
  Timer interval_timer_;

  uint64_t appending_ = 0;
  Event appended_;  // set while nothing is being appended
  bool closing_ = false;
  Scope scope_;
};

}  // namespace cairn::engine
