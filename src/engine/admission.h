// Admission: who may append now, who waits, who is refused. Everything an entry needs is taken here, before it has an
// index; what is admitted always fits.
//
// Lanes, each served in the order of arrival, so that those who need little don't stand behind those who need much:
//
//   lane     | who                                            | units down to | journal down to
//   ---------+------------------------------------------------+---------------+----------------
//   client   | writes that need new units                     | the reserve   | the reserve, and what a checkpoint
//   in_place | client writes to pages that have a home; kv    | nothing       |   holds back (checkpoint_pace.h)
//   reserved | deletes, discards, Purpose::internal           | nothing       | nothing
//
// Small writes in place take a unit only in case their chunk is deleted before they are applied; normally it goes back
// at once, so they may use the reserve and a full device can be overwritten.
//
// Units are short for good (no_space) when nothing is about to be freed; otherwise a checkpoint is asked for and waited
// for, boundedly. The journal is only ever short for the time of a checkpoint.
#pragma once

#include <array>
#include <optional>

#include "base/status.h"
#include "engine/journal.h"
#include "engine/permit.h"
#include "engine/shard_state.h"
#include "reactor/cancel.h"
#include "reactor/sync.h"
#include "reactor/task.h"

namespace cairn::engine {

class Admission final : public PermitOwner {
 public:
  enum class Lane : uint8_t { client, in_place, reserved };
  static constexpr size_t kLanes = 3;

  // Asked when a checkpoint would make room.
  class Listener {
   public:
    virtual void want_checkpoint() = 0;

   protected:
    ~Listener() = default;
  };

  Admission(ShardState& state, Journal& journal, Listener& listener);

  // What the entry needs at most, whatever happens to its chunk before it is appended.
  static Need need_of(const Entry& entry);
  Lane lane_of(const Entry& entry, mem::Purpose purpose) const;

  Task<Result<Permit>> admit(Need need, Lane lane, CancelToken token);
  void give_back(Need need) override;
  // Units or journal became free, or the shard's state changed.
  void changed() { changed_.set(); }
  // Refuses everything from now on, and what waits.
  void close() {
    closed_ = true;
    changed();
  }
  size_t waiting() const { return waiting_; }

 private:
  enum class Outcome : uint8_t { fits, no_units, no_units_yet, no_journal_yet };

  Outcome try_take(Need need, Lane lane);
  std::optional<Error> refusal() const;
  Task<Result<Permit>> wait(Need need, Lane lane, CancelToken token);
  bool checkpoint_helps(Outcome outcome) const;
  Error too_late(Outcome outcome) const;

  ShardState& state_;
  Journal& journal_;
  Listener& listener_;
  std::array<Semaphore, kLanes> turns_;
  Event changed_;
  size_t waiting_ = 0;
  bool closed_ = false;
};

}  // namespace cairn::engine
