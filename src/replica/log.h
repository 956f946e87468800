// Log: what a group sees of the agreement on its log. SoloLog is a group with one replica; Raft will stand behind the
// same interface.
//
//            propose                        committed, in index order
//   group ───────────▶ Log ──▶ majority ──▶ Log ───────────────────────▶ StateMachine::apply
//      ◀───────────────────────────────────── when this replica has applied it
//
// Everything belongs to the loop of the group's shard.
#pragma once

#include <string>

#include "base/status.h"
#include "engine/permit.h"
#include "engine/types.h"
#include "reactor/cancel.h"
#include "reactor/task.h"

namespace cairn::replica {

// An entry that will never be taken back. The engine knows where a chunk entry's payload lies.
struct Committed {
  engine::Index index;
  engine::EntryKind kind = engine::EntryKind::noop;
  std::string body;  // kv_batch
};

class StateMachine {
 public:
  // In index order, one at a time, on every replica. An error says that this replica can't go on: what it holds is
  // behind what was committed, so it must serve nothing until it is opened again.
  virtual Task<Result<void>> apply(Committed entry) = 0;

 protected:
  ~StateMachine() = default;
};

class Log {
 public:
  virtual ~Log() = default;

  // Whether this replica may propose and serve reads.
  virtual bool leads() const = 0;
  virtual engine::Term term() const = 0;
  virtual engine::Index last_index() const = 0;
  virtual engine::Index applied_index() const = 0;
  // Errc::ok, or why this replica has stopped.
  virtual Result<void> health() const = 0;

  // Gives the entry its term and index, and returns when it is committed and applied here. Indexes follow the order of
  // the calls. Not cancelable: what has an index runs its course. Errors: unavailable (doesn't lead: nothing has
  // happened); any other one leaves open whether it took effect.
  virtual Task<Result<void>> propose(engine::Entry entry, engine::Permit permit) = 0;

  // True: a read started now sees everything that was acknowledged before. False: wait for read_barrier() first (a
  // leader that must ask the others whether it still is one).
  virtual bool may_read() const = 0;
  virtual Task<Result<void>> read_barrier(CancelToken cancel) = 0;
};

}  // namespace cairn::replica
