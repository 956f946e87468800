// Janitor: the background work of the object layer on one reactor: a reaper for each of the groups it is given, and on
// one reactor of the node the sweep after a start.
//
//   object::Janitor janitor({.loop = loop, .client = client, .registry = registry, .wall = wall},
//                           {.groups = groups that this reactor leads, .sweeps = reactor == 0,
//                            .identity = that of the node's stores});
//   janitor.start();
//   ...
//   co_await janitor.close();   // before the client is closed
//
// A group should have one janitor. Two do no harm but work twice.
#pragma once

#include <memory>
#include <vector>

#include "object/core.h"
#include "object/reaper.h"
#include "object/sweep.h"
#include "reactor/sync.h"

namespace cairn::object {

class Janitor {
 public:
  // All outlive the janitor.
  struct Context {
    Loop& loop;
    client::Client& client;
    Registry& registry;
    const WallClock& wall;
  };
  struct Options {
    std::vector<engine::GroupId> groups;
    bool sweeps = false;
    Identity identity;
    uint64_t deletes_at_a_time = 8;
  };
  Janitor(Context context, Options options);
  Janitor(const Janitor&) = delete;
  Janitor& operator=(const Janitor&) = delete;
  // Closed before, if started.
  ~Janitor() = default;

  void start();
  Task<void> close();
  // The sweep after this start has ended.
  bool swept() const { return swept_; }

  Task<Result<OrphanReport>> check_orphans(CallContext context);

 private:
  Task<void> sweep();

  JanitorMetrics metrics_;
  Options options_;
  Scope scope_;
  Base base_;
  Semaphore turns_;
  std::vector<std::unique_ptr<Reaper>> reapers_;
  bool swept_ = false;
};

}  // namespace cairn::object
