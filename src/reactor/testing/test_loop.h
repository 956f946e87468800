// TestLoop: the smallest driver of a Loop, for unit tests. Time jumps to the next timer when nothing is ready.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/rng.h"
#include "reactor/loop.h"
#include "reactor/scope.h"
#include "reactor/task.h"

namespace cairn {

class TestLoop final : public Loop {
 public:
  explicit TestLoop(uint64_t seed = 1) : Loop(seeded_), seeded_(seed) {}
  Time now() const override { return now_; }

  // One round of what is ready; time stands still.
  size_t run_round() { return run_ready(); }
  // Rounds until nothing is ready; time stands still.
  void run_ready_only() {
    while (has_ready()) run_ready();
  }
  // Rounds and jumps until nothing is ready and no timer is armed.
  void run_until_idle() {
    for (;;) {
      run_ready_only();
      if (timers().size() == 0) return;
      now_ = std::max(now_, timers().next());
      timers().fire_due(now_);
    }
  }
  void advance(Duration by) {
    now_ = now_ + by;
    timers().fire_due(now_);
    run_ready_only();
  }

  // The result of std::invoke(function, arguments...), a Task<T>, run to its end.
  template <typename Function, typename... Arguments>
  auto run(Function function, Arguments... arguments) {
    using Awaited = decltype(std::invoke(std::declval<Function>(), std::declval<Arguments>()...));
    using T = decltype(std::declval<Awaited>().operator co_await().await_resume());
    Scope scope(*this);
    if constexpr (std::is_void_v<T>) {
      scope.spawn(std::move(function), std::move(arguments)...);
      run_until_idle();
      ASSERT(scope.running() == 0);
    } else {
      std::optional<T> result;
      scope.spawn(&TestLoop::store<T, Function, Arguments...>, &result, std::move(function), std::move(arguments)...);
      run_until_idle();
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
  Time now_;
};

}  // namespace cairn
