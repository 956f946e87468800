// CallContext: what a handler knows about the call it serves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/id.h"
#include "base/time.h"
#include "base/trace.h"
#include "mem/pool.h"
#include "reactor/cancel.h"
#include "reactor/loop.h"

namespace cairn::srpc {

class PushTarget;

// Lives until the handler returns.
struct CallContext {
  Loop& loop;
  mem::Pool& pool;
  const std::string& peer;  // address of the client, for logs
  Id128 client_id;          // the same for all connections of one client
  // Payload of the answer isn't sent but handed over: the client holds this pool's memory for as long as it likes.
  bool by_reference = false;
  uint64_t features = 0;   // of the connection: what both sides have
  uint64_t map_epoch = 0;  // of the client's cluster map, 0 = it named none
  Trace trace = {};        // of the client; handed on to other calls by hand
  Time deadline = Time::never();
  // Cancelled when the client cancels, its connection is lost, or the deadline passes: nobody waits for the answer any
  // more. What the handler returns then is dropped or ignored, and its effects are its own business. A call with a
  // sequence goes on when its connection is lost, for its client may come back: to its deadline, but no longer than an
  // answer would be kept (SequenceLimits::keep).
  CancelToken cancel;

  // The way back to this client for what it doesn't ask for one by one (push_target.h); outlives the call.
  std::shared_ptr<PushTarget> client;

  // Set by a handler that returns an error, to go with it.
  Duration retry_after{};    // with Errc::busy
  mem::BufChain error_data;  // e.g. the newer cluster map with Errc::stale_epoch
};

}  // namespace cairn::srpc
