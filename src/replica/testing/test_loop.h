// TestLoop: a Loop for tests of this module and those above it. Time is simulated: it jumps to the next timer when
// nothing is ready, so tests with background work that never ends run until a task has ended, not until all is quiet.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/rng.h"
#include "base/time.h"
#include "reactor/loop.h"
#include "reactor/scope.h"
#include "reactor/task.h"

namespace cairn::replica {

class TestLoop final : public Loop {
 public:
  explicit TestLoop(uint64_t seed = 1) : Loop(seeded_), seeded_(seed) {}
  Time now() const override { return now_; }

  // Does one thing. False when nothing will ever happen again.
  bool step() {
    if (has_ready()) {
      run_ready();
      return true;
    }
    if (timers().size() == 0) return false;
    now_ = std::max(now_, timers().next());
    timers().fire_due(now_);
    return true;
  }
  void run_for(Duration duration) {
    const Time end = now_ + duration;
    while (has_ready() || (timers().size() > 0 && timers().next() <= end)) step();
    now_ = std::max(now_, end);
  }
  bool run_until(const std::function<bool()>& done) {
    while (!done()) {
      if (!step()) return false;
    }
    return true;
  }

  // The result of invoke(function, arguments...), a Task<T>, run to its end.
  template <typename Function, typename... Arguments>
  auto run(Function function, Arguments... arguments) {
    using T = decltype(std::invoke(function, arguments...).operator co_await().await_resume());
    Scope scope(*this);
    if constexpr (std::is_void_v<T>) {
      scope.spawn(std::move(function), std::move(arguments)...);
      ASSERT(run_until([&] { return scope.running() == 0; }));
    } else {
      std::optional<T> result;
      scope.spawn(&TestLoop::store<T, Function, Arguments...>, &result, std::move(function), std::move(arguments)...);
      ASSERT(run_until([&] { return scope.running() == 0; }));
      ASSERT(result.has_value());
      return std::move(*result);
    }
  }

 private:
  template <typename T, typename Function, typename... Arguments>
  static Task<void> store(std::optional<T>* result, Function function, Arguments... arguments) {
    result->emplace(co_await std::invoke(std::move(function), std::move(arguments)...));
  }

  SeededRng seeded_;
  Time now_{1'000'000'000};
};

// A calendar that starts somewhere in 2026 and follows a loop's time.
class TestWallClock final : public WallClock {
 public:
  explicit TestWallClock(const Clock& clock) : clock_(clock) {}
  int64_t unix_ns() const override { return 1'780'000'000'000'000'000 + offset.ns + clock_.now().ns; }

  Duration offset{};  // for jumps

 private:
  const Clock& clock_;
};

}  // namespace cairn::replica
