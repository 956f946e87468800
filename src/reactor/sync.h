// Waiting for each other within one thread: Event and Semaphore. Waiters wake in the order they came, through the
// loop's ready queue, so that waking never runs foreign code inside the caller.
#pragma once

#include <coroutine>
#include <cstdint>

#include "base/assert.h"
#include "base/status.h"
#include "reactor/cancel.h"
#include "reactor/loop.h"

namespace cairn {

namespace detail {

class WaitList;

// One suspended coroutine in a WaitList; lives in its frame.
class Waiter {
 public:
  Waiter(Loop& loop, WaitList& list, uint64_t amount, CancelToken token)
      : loop_(loop), list_(list), amount_(amount), token_(token) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  uint64_t amount() const { return amount_; }

 protected:
  friend class WaitList;
  static void on_cancel(void* self);

  Loop& loop_;
  WaitList& list_;
  uint64_t amount_;
  CancelToken token_;
  Errc reason_ = Errc::ok;
  CancelCallback callback_;
  std::coroutine_handle<> handle_;
  Waiter* previous_ = nullptr;
  Waiter* next_ = nullptr;
};

class WaitList {
 public:
  WaitList() = default;
  WaitList(const WaitList&) = delete;
  WaitList& operator=(const WaitList&) = delete;
  ~WaitList() { ASSERT(empty()); }

  bool empty() const { return head_ == nullptr; }
  Waiter& front() { return *head_; }
  void push(Waiter& waiter);
  void unlink(Waiter& waiter);
  // Unlinks the first waiter and posts it with `reason` (ok: it got what it waited for).
  void wake_front(Errc reason);

 private:
  Waiter* head_ = nullptr;
  Waiter* tail_ = nullptr;
};

}  // namespace detail

// Set once and for all until reset; everybody waiting goes on.
class Event {
 public:
  explicit Event(Loop& loop) : loop_(loop) {}

  bool is_set() const { return set_; }
  void set();
  void reset() { set_ = false; }

  class Awaiter;
  // Result<void>: an error with the token's reason when cancelled first.
  Awaiter wait(CancelToken token = {});

 private:
  Loop& loop_;
  bool set_ = false;
  detail::WaitList waiters_;
};

class Event::Awaiter : private detail::Waiter {
 public:
  Awaiter(Event& event, CancelToken token) : Waiter(event.loop_, event.waiters_, 0, token), event_(event) {}
  bool await_ready() {
    if (event_.set_) return true;
    reason_ = token_.reason();
    return reason_ != Errc::ok;
  }
  void await_suspend(std::coroutine_handle<> handle) {
    handle_ = handle;
    list_.push(*this);
  }
  Result<void> await_resume() {
    if (reason_ != Errc::ok) return Error(reason_);
    return {};
  }

 private:
  Event& event_;
};

inline Event::Awaiter Event::wait(CancelToken token) { return {*this, token}; }

// Counts units of something. Strictly first come, first served: a large request at the front is not overtaken by small
// ones, so it can't starve.
class Semaphore {
 public:
  Semaphore(Loop& loop, uint64_t available) : loop_(loop), available_(available) {}

  uint64_t available() const { return available_; }
  bool has_waiters() const { return !waiters_.empty(); }
  // Takes n at once, or nothing when fewer are available or others wait.
  bool try_take(uint64_t n = 1);
  void give(uint64_t n = 1);
  // Ends all waits with `reason`.
  void fail_waiters(Errc reason);

  class Awaiter;
  // Result<void>: the caller owns n units on success.
  Awaiter take(uint64_t n = 1, CancelToken token = {});

 private:
  friend class detail::Waiter;
  void serve();

  Loop& loop_;
  uint64_t available_;
  detail::WaitList waiters_;
};

class Semaphore::Awaiter : private detail::Waiter {
 public:
  Awaiter(Semaphore& semaphore, uint64_t n, CancelToken token)
      : Waiter(semaphore.loop_, semaphore.waiters_, n, token), semaphore_(semaphore) {}
  bool await_ready() {
    reason_ = token_.reason();
    return reason_ != Errc::ok || semaphore_.try_take(amount_);
  }
  void await_suspend(std::coroutine_handle<> handle) {
    handle_ = handle;
    list_.push(*this);
  }
  Result<void> await_resume() {
    // A waiter that was cancelled at the front may have blocked smaller ones behind it.
    if (reason_ != Errc::ok) {
      semaphore_.serve();
      return Error(reason_);
    }
    return {};
  }

 private:
  Semaphore& semaphore_;
};

inline Semaphore::Awaiter Semaphore::take(uint64_t n, CancelToken token) { return {*this, n, token}; }

}  // namespace cairn
