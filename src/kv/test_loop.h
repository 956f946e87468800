// TestLoop: the smallest driver of a Loop, for this module's tests. Time jumps to the next timer when nothing is ready.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/rng.h"
#include "reactor/loop.h"
#include "reactor/scope.h"
#include "reactor/task.h"

namespace cairn::kv {

class TestLoop final : public Loop {
 public:
  explicit TestLoop(uint64_t seed = 1) : Loop(seeded_), seeded_(seed) {}
  Time now() const override { return now_; }

  // Runs until nothing is ready and no timer is armed.
  void run_until_idle() {
    for (;;) {
      if (has_ready()) {
        run_ready();
      } else if (timers().size() > 0) {
        now_ = std::max(now_, timers().next());
        timers().fire_due(now_);
      } else {
        return;
      }
    }
  }

  // The result of invoke(function, arguments...), a Task<T>, run to its end.
  template <typename Function, typename... Arguments>
  auto run(Function function, Arguments... arguments) {
    using T = decltype(std::invoke(function, arguments...).operator co_await().await_resume());
    std::optional<T> result;
    Scope scope(*this);
    scope.spawn(&TestLoop::store<T, Function, Arguments...>, &result, std::move(function), std::move(arguments)...);
    run_until_idle();
    ASSERT(result.has_value());
    return std::move(*result);
  }

 private:
  template <typename T, typename Function, typename... Arguments>
  static Task<void> store(std::optional<T>* result, Function function, Arguments... arguments) {
    result->emplace(co_await std::invoke(std::move(function), std::move(arguments)...));
  }

  SeededRng seeded_;
  Time now_;
};

}  // namespace cairn::kv
