// StepLoop: a Loop whose time a test moves. Unlike TestLoop it can stop as soon as a task has ended, while timers (a
// checkpoint in thirty seconds) are still armed.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/rng.h"
#include "reactor/loop.h"
#include "reactor/scope.h"
#include "reactor/task.h"

namespace cairn::engine::test {

class StepLoop final : public Loop {
 public:
  explicit StepLoop(uint64_t seed = 1) : Loop(seeded_), seeded_(seed) {}
  Time now() const override { return now_; }

  // One round, or a jump to the next timer. False when nothing will ever happen again.
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
  void run_until(const std::function<bool()>& done) {
    while (!done()) ASSERT(step());
  }
  void run_for(Duration duration) {
    const Time end = now_ + duration;
    while (has_ready() || (timers().size() > 0 && timers().next() <= end)) step();
    now_ = end;
  }

  // The result of std::invoke(function, arguments...), a Task<T>; stops when it has ended.
  template <typename Function, typename... Arguments>
  auto run(Function function, Arguments... arguments) {
    using Awaited = decltype(std::invoke(std::declval<Function>(), std::declval<Arguments>()...));
    using T = decltype(std::declval<Awaited>().operator co_await().await_resume());
    Scope scope(*this);
    if constexpr (std::is_void_v<T>) {
      scope.spawn(std::move(function), std::move(arguments)...);
      run_until([&] { return scope.running() == 0; });
    } else {
      std::optional<T> result;
      scope.spawn(&StepLoop::store<T, Function, Arguments...>, &result, std::move(function), std::move(arguments)...);
      run_until([&] { return scope.running() == 0; });
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

}  // namespace cairn::engine::test
