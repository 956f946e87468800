// Rig: what a test of an HTTP server stands on: a reactor, an arena, a clock that doesn't move by itself.
#pragma once

#include <memory>
#include <utility>

#include "base/assert.h"
#include "base/metrics.h"
#include "base/rng.h"
#include "base/time.h"
#include "mem/arena.h"
#include "mem/pool.h"
#include "reactor/listener.h"
#include "reactor/reactor.h"

namespace cairn::http::testing {

class FixedWallClock final : public WallClock {
 public:
  int64_t unix_ns() const override { return now_ns; }
  int64_t now_ns = int64_t{1'796'025'600} * 1'000'000'000;  // 2026-11-30T08:00:00Z
};

class Rig {
 public:
  explicit Rig(size_t arena_bytes = size_t{32} << 20) : rng_(1) {
    auto made =
        Reactor::create({.mode = Mode::economy, .wake_cost = microseconds(30), .rng = rng_, .registry = registry});
    ASSERT(made.has_value());
    reactor = *std::move(made);
    auto memory = mem::Arena::create(arena_bytes);
    ASSERT(memory.has_value());
    arena_ = std::make_unique<mem::Arena>(*std::move(memory));
    pool = std::make_unique<mem::Pool>(*reactor, registry, arena_->memory(), 0);
  }

  // Runs a coroutine to its end.
  template <typename Function, typename... Arguments>
  auto run(Function function, Arguments... arguments) {
    return reactor->run_task(std::move(function), std::move(arguments)...);
  }

  Registry registry;
  FixedWallClock wall_clock;
  std::unique_ptr<Reactor> reactor;

 private:
  SeededRng rng_;
  std::unique_ptr<mem::Arena> arena_;

 public:
  std::unique_ptr<mem::Pool> pool;
};

}  // namespace cairn::http::testing
