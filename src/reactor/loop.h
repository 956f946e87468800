// Loop: what a core module sees of the thread it runs on: time, timers, and a queue of work that is ready to run. The
// Reactor (reactor.h) drives it with io_uring and sockets, the simulator with simulated time, so a module that takes a
// Loop& runs in both.
//
// Everything here belongs to one thread.
#pragma once

#include <coroutine>
#include <cstdint>
#include <deque>

#include "base/rng.h"
#include "base/status.h"
#include "base/time.h"
#include "reactor/cancel.h"
#include "reactor/timer.h"

namespace cairn {

class Loop : public Clock {
 public:
  explicit Loop(Rng& rng) : rng_(&rng) {}
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs `function(argument)` in a later round, in the order of posting.
  using Function = void (*)(void*);
  void post(Function function, void* argument) { ready_.push_back({function, argument}); }
  void post(std::coroutine_handle<> handle) {
    post([](void* address) { std::coroutine_handle<>::from_address(address).resume(); }, handle.address());
  }

  void arm(Timer& timer, Time at) { timers_.arm(timer, at); }
  void arm_in(Timer& timer, Duration delay) { timers_.arm(timer, now() + delay); }
  void disarm(Timer& timer) { timers_.disarm(timer); }

  Rng& rng() { return *rng_; }

  // co_await loop.sleep(d, token): Result<void>, an error with the token's reason if cancelled before.
  class SleepAwaiter;
  SleepAwaiter sleep_until(Time at, CancelToken token = {});
  SleepAwaiter sleep(Duration delay, CancelToken token = {});
  // co_await loop.yield(): lets everything else that is ready run first.
  class YieldAwaiter;
  YieldAwaiter yield();

 protected:
  // For drivers. One round: runs what was ready at the call, not what it adds. Returns how many ran.
  size_t run_ready();
  bool has_ready() const { return !ready_.empty(); }
  TimerHeap& timers() { return timers_; }

 private:
  struct Ready {
    Function function;
    void* argument;
  };

  Rng* rng_;
  std::deque<Ready> ready_;
  TimerHeap timers_;
};

class Loop::YieldAwaiter {
 public:
  explicit YieldAwaiter(Loop& loop) : loop_(loop) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) { loop_.post(handle); }
  void await_resume() const noexcept {}

 private:
  Loop& loop_;
};

class Loop::SleepAwaiter {
 public:
  SleepAwaiter(Loop& loop, Time at, CancelToken token) : loop_(loop), at_(at), token_(token), timer_(&wake, this) {}

  bool await_ready() {
    reason_ = token_.reason();
    return reason_ != Errc::ok;
  }
  void await_suspend(std::coroutine_handle<> handle) {
    handle_ = handle;
    loop_.arm(timer_, at_);
    callback_.arm(token_, &on_cancel, this);
  }
  Result<void> await_resume() {
    if (reason_ != Errc::ok) return Error(reason_);
    return {};
  }

 private:
  static void wake(void* self) {
    auto& awaiter = *static_cast<SleepAwaiter*>(self);
    awaiter.callback_.reset();
    awaiter.loop_.post(awaiter.handle_);
  }
  static void on_cancel(void* self) {
    auto& awaiter = *static_cast<SleepAwaiter*>(self);
    awaiter.reason_ = awaiter.token_.reason();
    awaiter.loop_.disarm(awaiter.timer_);
    awaiter.loop_.post(awaiter.handle_);
  }

  Loop& loop_;
  Time at_;
  CancelToken token_;
  Errc reason_ = Errc::ok;
  Timer timer_;
  CancelCallback callback_;
  std::coroutine_handle<> handle_;
};

inline Loop::SleepAwaiter Loop::sleep_until(Time at, CancelToken token) { return {*this, at, token}; }
inline Loop::SleepAwaiter Loop::sleep(Duration delay, CancelToken token) { return {*this, now() + delay, token}; }
inline Loop::YieldAwaiter Loop::yield() { return YieldAwaiter(*this); }

}  // namespace cairn
