// Task<T>: a lazy coroutine with one awaiter.
//
//   Task<Result<uint64_t>> size_of(Path path);
//   ...
//   CO_TRY(auto size, co_await size_of(path));
//
// A task starts when it is awaited and resumes its awaiter by symmetric transfer, so a chain of any length uses no
// stack. It can't be moved or stored: it is awaited in the expression that made it, so its arguments, temporaries
// included, live until it ends. Work that must go on in the background is spawned in a Scope (scope.h).
#pragma once

#include <coroutine>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/assert.h"

namespace cairn {

template <typename T>
class Task;

namespace detail {

class TaskPromiseBase {
 public:
  std::suspend_always initial_suspend() noexcept { return {}; }

  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) noexcept {
      return self.promise().continuation_;
    }
    void await_resume() noexcept {}
  };
  FinalAwaiter final_suspend() noexcept { return {}; }

  // Exceptions don't cross a module; one that gets here is a bug of the module that let it out.
  [[noreturn]] void unhandled_exception() noexcept {
    assertion_failed("exception left a coroutine", __FILE__, __LINE__);
  }

  void set_continuation(std::coroutine_handle<> continuation) noexcept { continuation_ = continuation; }

 private:
  std::coroutine_handle<> continuation_;
};

template <typename T>
class TaskPromise final : public TaskPromiseBase {
 public:
  Task<T> get_return_object() noexcept;
  template <typename U>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  T take() { return std::move(*value_); }

 private:
  std::optional<T> value_;
};

template <>
class TaskPromise<void> final : public TaskPromiseBase {
 public:
  Task<void> get_return_object() noexcept;
  void return_void() noexcept {}
  void take() noexcept {}
};

}  // namespace detail

template <typename T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::TaskPromise<T>;

  explicit Task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() { handle_.destroy(); }

  struct Awaiter {
    std::coroutine_handle<promise_type> handle;
    bool await_ready() noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
      handle.promise().set_continuation(awaiting);
      return handle;
    }
    T await_resume() { return handle.promise().take(); }
  };
  Awaiter operator co_await() && noexcept { return {handle_}; }

 private:
  std::coroutine_handle<promise_type> handle_;
};

template <typename T>
Task<T> detail::TaskPromise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}
inline Task<void> detail::TaskPromise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

}  // namespace cairn
