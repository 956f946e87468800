// Base and Core: what the parts of one reactor's object layer work with, and the few things they all do.
#pragma once

#include <string>

#include "base/id.h"
#include "base/time.h"
#include "client/client.h"
#include "object/metrics.h"
#include "object/object_store.h"
#include "reactor/loop.h"
#include "reactor/scope.h"

namespace cairn::object {

// Who writes: the owner stays the same over restarts (the node's id), the life is new in each.
struct Identity {
  Id128 owner;
  Id128 life;
};

struct Base {
  Loop& loop;
  client::Client& client;
  const WallClock& wall;
  // Work that outlives the call that started it. Cancelled and joined by its owner.
  Scope& background;

  client::CallContext call(const CallContext& context) const {
    return {.deadline = context.deadline, .cancel = context.cancel, .trace = context.trace};
  }
  // For background work: nobody waits, so a single call may take its time, but not forever.
  client::CallContext background_call() const {
    return {.deadline = loop.now() + seconds(60), .cancel = background.token()};
  }
};

struct Core : Base {
  Metrics& metrics;
  Identity identity;

  // A short random pause, longer with each attempt, so that those who collided don't collide again.
  Task<Result<void>> pause(uint32_t attempt, CancelToken cancel) const;
};

// Commits that collide are tried again this often, then Errc::busy.
inline constexpr uint32_t kMaxAttempts = 200;

}  // namespace cairn::object
