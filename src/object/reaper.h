// Reaper: works off the delete queue of one group: what was replaced, deleted, aborted, or left over by a completed
// upload. Each item is done again from the start after a crash, which is harmless: deleting twice is ok, and the item
// goes last.
//
//   read a batch ──▶ wait kDeleteGrace ──▶ who is leased? ──▶ delete the rest ──▶ delete their items
//        └─▶ read the next one meanwhile: many batches wait at a time, so that the grace doesn't bound the rate
//
// The grace is what readers rely on (stored_reader.h): counted from when the item was seen, which is after it was
// queued, by this side's monotonic clock. A leader that hasn't been taking leases for kLeaseTime may not know of all,
// so its "not held" doesn't count.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "object/core.h"
#include "object/records.h"
#include "reactor/scope.h"
#include "reactor/sync.h"

namespace cairn::object {

class Reaper {
 public:
  // `turns`: deletes at a time, shared by the groups of a reactor, so that they stay in the background.
  Reaper(Base base, JanitorMetrics& metrics, Semaphore& turns, engine::GroupId group)
      : base_(base), metrics_(metrics), turns_(turns), group_(group) {}
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // Until the base's background is cancelled.
  Task<void> run();

 private:
  struct Item {
    std::string key;
    GarbageRecord garbage;
    bool leased = false;
    bool done = false;
  };
  struct Look {
    bool any = false;   // something was new
    bool more = false;  // there is more to read at once
  };
  // Reads from `cursor_` on and spawns a batch of what doesn't wait yet.
  Task<Result<Look>> look(Scope* batches);
  Task<void> work_off(std::vector<Item> items);
  Task<Result<void>> delete_batch(std::vector<Item>* items);
  Task<Result<void>> check_leases(std::vector<Item>* items);
  void report(const Result<void>& result);
  Task<void> delete_item(Item* item, Result<void>* first_error);
  Task<Result<void>> delete_garbage(const GarbageRecord& garbage);
  Task<Result<void>> delete_data(DataRef data);
  Task<Result<void>> delete_table(Id128 bucket, DataId table);
  Task<Result<void>> delete_parts(Id128 bucket, Id128 upload, bool with_data);
  Task<Result<void>> abort_uploads(Id128 bucket);
  Task<Result<void>> erase(std::vector<std::string> keys);

  Base base_;
  JanitorMetrics& metrics_;
  Semaphore& turns_;
  engine::GroupId group_;
  std::string cursor_;             // where to look next; empty: at the front
  Time pass_began_{};              // when it last was at the front
  std::set<std::string> waiting_;  // the items of the batches under way
  Errc last_error_ = Errc::ok;
};

}  // namespace cairn::object
