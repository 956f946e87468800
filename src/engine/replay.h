// Reads the journal at opening, decides where it ends, and says what it holds.
//
// The journal is a chain of batches from the superblock's tail on. It is read as long as the next one is whole; then it
// is either torn (the crash came while it was being written: cut, nothing behind it was ever acknowledged) or corrupt
// (it was whole once). What tells them apart is the durable mark: the furthest position of which the superblock or any
// later whole batch says that everything below it was durable, or that holds an entry of which the store says that it
// was applied.
//
//   a batch that isn't whole ...          | below the mark                  | beyond the mark
//   --------------------------------------+---------------------------------+--------------------------
//   header, records or body are bad       | damage: nothing can be trusted  | cut
//   an inline page is bad                 | that page of the chunk is lost  | cut
//   payload in units is bad               | found when it is read           | cut
//   the device can't read header, records | damage (it may well be whole)   | damage
//   the device can't read payload         | tried again when it is needed   | damage
//
// A device that loses payload it has confirmed, in the very last batches before a crash, can't be told from one that
// was interrupted while writing them: nothing was written afterwards that could say so. Such entries are cut, and
// counted (Replay::cut_entries), so that the shard can say it.
//
// Nothing is written here, and a damaged journal is never cut.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/block_device.h"
#include "engine/journal_format.h"
#include "engine/superblock.h"
#include "mem/pool.h"
#include "reactor/task.h"

namespace cairn::engine {

struct ReplayedEntry {
  Record record;
  Lsn batch{};
  Lsn inline_lsn{};
  uint32_t rotten_pages = 0;  // a bit per inline page
};

struct Replay {
  std::vector<ReplayedEntry> entries;                   // those wanted, in the order of the journal
  std::vector<std::pair<GroupId, Index>> last_indexes;  // of every group seen, ascending by group
  Lsn end{};                                            // the next batch goes here
  std::optional<std::string> damage;
  uint64_t rotten_pages = 0;
  uint64_t cut_entries = 0;  // whole records behind `end`, whose payload or predecessors' isn't whole
};

// What the store knows.
class ReplayFilter {
 public:
  // Tells which records matter: others are covered by the checkpoint and only passed by.
  virtual bool wants(const Record& record) const = 0;
  // The store has this entry's effects: it was durable, since only durable entries are applied.
  virtual bool was_applied(const Record& record) const = 0;

 protected:
  ~ReplayFilter() = default;
};

// Errors: unsupported (batches of a newer release), the pool's.
Task<Result<Replay>> replay_journal(BlockDevice& device, mem::Pool& pool, const ShardLayout& layout,
                                    JournalIdentity identity, const Superblock& superblock, const ReplayFilter& filter);

}  // namespace cairn::engine
