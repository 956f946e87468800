// Checkpointer: moves small writes home and changed maps to the store, so that journal and superseded units become
// free.
//
//   1  at one moment: tail := the first batch with an entry that isn't applied; the dirty pages and the changed chunks
//      become this checkpoint's, new ones gather for the next
//   2  superblock with the old tail and the durable position (only when there are pages to write home, see below)
//   3  pages home, neighbours in one write; flush
//   4  map records into the store, last the groups' marks and the checkpoint's number; flush of the store
//   5  superblock with the new tail (its write flushes)
//   6  the journal before the tail is free, and so are the units superseded by entries before it
//
// A crash at any point replays from the old tail, or the new one. Then it finds
//   before 4: the old map. Pages may be home already; their entries are replayed and cover them.
//   in 4:     some chunks' records are newer than the marks. Each carries the index of its last change, and entries up
//   to
//             it are passed by (recovery.cc).
//   before 5: new maps and marks; the replay finds everything covered.
//
// Step 2: a page written home may lie in a unit that an entry further up wrote directly, and the replay checks the
// units of entries that it can't be sure were durable. The superblock makes it sure, so that it never looks at a unit
// that was overwritten meanwhile.
//
// A failed write or flush fences the shard; a failure of the store leaves everything as it was for the next try. So
// does a device that can't read the journal, where a page may have its only copy: a controller that is reset answers
// again after some seconds. Only then is the page given up, so that one bad sector doesn't stop the shard for good.
#pragma once

#include <vector>

#include "base/status.h"
#include "engine/journal.h"
#include "engine/shard_state.h"
#include "reactor/scope.h"
#include "reactor/sync.h"
#include "reactor/task.h"

namespace cairn::engine {

class Checkpointer {
 public:
  // Told at the end of each checkpoint, and as it gets on.
  class Listener {
   public:
    virtual void on_checkpoint(bool succeeded) = 0;
    // state.pace holds less back.
    virtual void on_checkpoint_progress() = 0;

   protected:
    ~Listener() = default;
  };

  Checkpointer(ShardState& state, Journal& journal, Listener& listener)
      : state_(state), journal_(journal), listener_(listener) {}

  // One at a time.
  Task<Result<void>> run();
  bool running() const { return running_; }
  // The last one has the effects and the marks of everything that is applied. The marks count by themselves: an entry
  // without effects (a noop, a delete of what isn't there) moves its group's log on, and that must not be forgotten.
  bool covers_all_applied() const;
  // Nothing changed since the last one: it would have nothing to do.
  bool is_idle() const;
  // The next superblock, with what changed since the last one.
  Task<Result<void>> write_superblock(Lsn tail, uint64_t checkpoint, bool clean);
  // Once the journal is fenced: a superblock that says so, for an opening that finds the device as it is now, without a
  // loss of power in between. As well as it can: a device that takes no more writes has nothing to forget either.
  Task<void> leave_word();
  bool has_word_to_leave() const { return journal_.fenced() && !state_.damage && !left_word_; }

 private:
  struct Cut {
    Lsn tail{};
    uint64_t checkpoint = 0;
    uint64_t applies = 0;  // of state_.applies
    std::vector<std::pair<GroupId, Index>> applied;
  };

  Cut begin();
  uint64_t grant(uint64_t gain) const;
  Task<Result<void>> write_all(const Cut& cut);
  Task<Result<void>> write_home();
  using Pages = std::vector<std::pair<HomePage, DirtyPage>>;  // neighbours
  struct Home {
    size_t under_way = 0;  // runs
    Event run_ended;
    Errc first_error = Errc::ok;  // of the writes
    bool unreadable = false;      // a page's only copy can't be read now
  };
  Task<void> write_run(Pages pages, Home* home);
  Task<Result<void>> load_from_journal(HomePage home, DirtyPage& page);
  Task<Result<void>> write_maps(const Cut& cut);
  Task<Result<void>> store_write(std::vector<kv::Mutation> mutations);
  Task<void> finish(const Cut& cut);

  ShardState& state_;
  Journal& journal_;
  Listener& listener_;
  bool running_ = false;
  bool left_word_ = false;
  uint64_t durable_generation_ = 0;  // of the superblock that was flushed last
  int unreadable_in_a_row_ = 0;      // checkpoints that failed because the journal could not be read
};

}  // namespace cairn::engine
