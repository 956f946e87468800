// Scope: the owner of background work. Whatever is spawned in it ends before it does.
//
//   Scope scope(loop);
//   scope.spawn(&Server::serve, this, std::move(connection));   // arguments are kept by value
//   ...
//   co_await scope.close();                                     // cancels, then waits for all
#pragma once

#include <coroutine>
#include <functional>
#include <utility>

#include "base/assert.h"
#include "reactor/cancel.h"
#include "reactor/loop.h"
#include "reactor/sync.h"
#include "reactor/task.h"

namespace cairn {

class Scope {
 public:
  explicit Scope(Loop& loop) : loop_(loop), idle_(loop) { idle_.set(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  // Must be closed, or joined with nothing spawned since.
  ~Scope() { ASSERT(running_ == 0); }

  // Starts std::invoke(function, arguments...), which returns a Task<void>, and runs it up to its first suspension. The
  // function and arguments are moved into the new coroutine; pass `this` or a token only for what outlives the scope.
  // Spawning in a cancelled scope is allowed: the work sees the token cancelled.
  template <typename Function, typename... Arguments>
  void spawn(Function function, Arguments... arguments) {
    if (running_++ == 0) idle_.reset();
    run(*this, std::move(function), std::move(arguments)...);
  }

  // For spawned work to pass down.
  CancelToken token() { return source_; }
  size_t running() const { return running_; }
  Loop& loop() { return loop_; }

  void cancel(Errc reason = Errc::cancelled) { source_.cancel(reason); }
  // Waits until nothing runs. Spawning meanwhile prolongs it.
  Task<void> join() {
    while (running_ > 0) (void)co_await idle_.wait();
  }
  Task<void> close() {
    cancel();
    co_await join();
  }

 private:
  // A coroutine that starts at once and frees itself at its end.
  struct Detached {
    struct promise_type {
      Detached get_return_object() noexcept { return {}; }
      std::suspend_never initial_suspend() noexcept { return {}; }
      std::suspend_never final_suspend() noexcept { return {}; }
      void return_void() noexcept {}
      [[noreturn]] void unhandled_exception() noexcept {
        assertion_failed("exception left a coroutine", __FILE__, __LINE__);
      }
    };
  };

  template <typename Function, typename... Arguments>
  static Detached run(Scope& scope, Function function, Arguments... arguments) {
    co_await std::invoke(std::move(function), std::move(arguments)...);
    if (--scope.running_ == 0) scope.idle_.set();
  }

  Loop& loop_;
  CancelSource source_;
  size_t running_ = 0;
  Event idle_;
};

}  // namespace cairn
