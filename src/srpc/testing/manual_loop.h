// For tests: a loop whose time stands still until everything is quiet, and then jumps to the next timer.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "base/rng.h"
#include "reactor/loop.h"
#include "reactor/scope.h"

namespace cairn::srpc::testing {

class ManualLoop final : public Loop {
 public:
  explicit ManualLoop(uint64_t seed = 1) : Loop(rng_), rng_(seed) {}

  Time now() const override { return now_; }

  // One round. False when nothing is left to do, ever.
  bool step() {
    if (run_ready() + timers().fire_due(now_) > 0) return true;
    if (timers().next() == Time::never()) return false;
    now_ = timers().next();
    return true;
  }
  // False when it became quiet, or `rounds` passed, without `done`.
  bool run_until(const std::function<bool()>& done, size_t rounds = 1'000'000) {
    for (size_t i = 0; i < rounds; ++i) {
      if (done()) return true;
      if (!step()) return done();
    }
    return false;
  }
  // Runs what happens within `duration`.
  void run_for(Duration duration) {
    const Time end = now_ + duration;
    for (;;) {
      if (run_ready() + timers().fire_due(now_) > 0) continue;
      if (timers().next() > end) break;
      now_ = timers().next();
    }
    now_ = end;
  }
  // Runs the task to its end; nullopt when it hangs.
  template <typename Function, typename... Arguments>
  auto run(Function function, Arguments... arguments) {
    using T = decltype(std::invoke(function, arguments...).operator co_await().await_resume());
    Scope scope(*this);
    if constexpr (std::is_void_v<T>) {
      bool done = false;
      scope.spawn(&mark<Function, Arguments...>, &done, std::move(function), std::move(arguments)...);
      const bool ended = run_until([&] { return done; });
      ASSERT(ended);
    } else {
      std::optional<T> result;
      scope.spawn(&store<T, Function, Arguments...>, &result, std::move(function), std::move(arguments)...);
      const bool ended = run_until([&] { return result.has_value(); });
      ASSERT(ended);
      return std::move(*result);
    }
  }

 private:
  template <typename T, typename Function, typename... Arguments>
  static Task<void> store(std::optional<T>* result, Function function, Arguments... arguments) {
    result->emplace(co_await std::invoke(std::move(function), std::move(arguments)...));
  }
  template <typename Function, typename... Arguments>
  static Task<void> mark(bool* done, Function function, Arguments... arguments) {
    co_await std::invoke(std::move(function), std::move(arguments)...);
    *done = true;
  }

  SeededRng rng_;
  Time now_{1'000'000'000};
};

}  // namespace cairn::srpc::testing
