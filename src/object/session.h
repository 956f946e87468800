// Session: a writer's licence to create data. docs/decisions has why.
//
// Chunks are written before the record that refers to them, so a crash leaves chunks that nobody refers to. To find
// them without guessing, each life of each writer has a session: its number is the first part of every data id it gives
// out. When the session is known to be dead, it is fenced (its key f/ is deleted in every group, and every commit of a
// new reference has that key as a condition), and then what nobody refers to can be deleted, whatever the dead writer
// may still try.
//
//   system group   S/ session -> owner, life      written first, deleted last
//   every group    f/ session                     present while the session lives
#pragma once

#include <cstdint>
#include <optional>

#include "object/commit.h"
#include "object/core.h"
#include "object/data_id.h"
#include "reactor/sync.h"

namespace cairn::object {

class Session {
 public:
  explicit Session(Core& core) : core_(core), opening_(core.loop, 1) {}

  // A name for new data; opens the session when it is the first one. Errors: the client's.
  Task<Result<DataId>> new_data(CallContext context);
  // The condition of every commit that refers to new data for the first time.
  static void require_alive(Commit& commit, DataId data);
  // A commit found the session fenced: the next data gets another session.
  void lost(uint32_t number);
  // Something was left behind that only a sweep will find.
  void leaked() { clean_ = false; }

  // Ends the session. When nothing was left behind, nothing of it remains; otherwise the owner's next life sweeps.
  Task<void> close();

 private:
  Task<Result<uint32_t>> open(CallContext context);
  Task<Result<uint32_t>> reserve_number(CallContext context);
  Task<void> put_fence(engine::GroupId group, uint32_t number, Result<void>* result, CallContext context);

  Core& core_;
  Semaphore opening_;  // one at a time
  std::optional<uint32_t> number_;
  uint64_t counter_ = 0;
  bool clean_ = true;
};

// Deletes the session's fences in all groups. From then on none of its commits succeeds.
Task<Result<void>> fence_session(client::Client& client, uint32_t number, client::CallContext context);

}  // namespace cairn::object
