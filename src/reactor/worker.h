// Worker: one reactor on a thread of its own, and two ways to run coroutines there from outside.
//
//   Worker worker(std::move(reactor));
//   worker.start("cairn-0");
//   auto opened = worker.call(&Part::open, &part).get();              // from the main thread, which it blocks
//   auto status = co_await worker.ask(home, &Part::status, &part);    // from another reactor, or this one
//   worker.stop();
#pragma once

#include <coroutine>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "reactor/reactor.h"
#include "reactor/remote.h"
#include "reactor/scope.h"
#include "reactor/task.h"

namespace cairn {

namespace detail {

template <typename Function, typename... Arguments>
using ResultOf =
    decltype(std::invoke(std::declval<Function>(), std::declval<Arguments>()...).operator co_await().await_resume());

// Waits, on its home reactor, for what another one brings. Lives in the waiting coroutine's frame.
template <typename T>
class RemoteAnswer {
 public:
  explicit RemoteAnswer(Reactor& home) : home_(home), way_back_(*this) {}

  // On the other thread, once.
  void bring(T value) {
    value_.emplace(std::move(value));
    home_.enqueue(way_back_);  // the last touch: the frame may be gone afterwards
  }

  // The way back ends in a later round of this thread, so never before the coroutine is suspended.
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) { handle_ = handle; }
  T await_resume() { return std::move(*value_); }

 private:
  struct WayBack final : RemoteWork {
    explicit WayBack(RemoteAnswer& a) : RemoteWork(&arrive), answer(a) {}
    static void arrive(RemoteWork& work) {
      RemoteAnswer& self = static_cast<WayBack&>(work).answer;
      self.home_.post(self.handle_);
    }
    RemoteAnswer& answer;
  };

  Reactor& home_;
  WayBack way_back_;
  std::coroutine_handle<> handle_;
  std::optional<T> value_;
};

template <typename T, typename Function, typename... Arguments>
Task<void> bring_answer(RemoteAnswer<T>* answer, Function function, Arguments... arguments) {
  answer->bring(co_await std::invoke(std::move(function), std::move(arguments)...));
}

template <typename T, typename Function, typename... Arguments>
Task<void> keep_promise(std::promise<T> promise, Function function, Arguments... arguments) {
  if constexpr (std::is_void_v<T>) {
    co_await std::invoke(std::move(function), std::move(arguments)...);
    promise.set_value();
  } else {
    promise.set_value(co_await std::invoke(std::move(function), std::move(arguments)...));
  }
}

}  // namespace detail

class Worker {
 public:
  // Made on the main thread, like everything that the reactor will drive.
  explicit Worker(std::unique_ptr<Reactor> reactor) : reactor_(std::move(reactor)), scope_(*reactor_) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() { stop(); }

  Reactor& reactor() { return *reactor_; }
  bool started() const { return thread_.joinable(); }

  // From now on the reactor belongs to its thread. `name` shows in ps and perf.
  void start(const std::string& name);
  // Ends the thread. Nothing that was called or asked is under way.
  void stop();

  // Both run std::invoke(function, arguments...), a Task<T>, on the worker's thread, and give its T. What arguments
  // point to outlives it. For control work only: each counts as a hop between threads.
  template <typename Function, typename... Arguments>
  auto call(Function function, Arguments... arguments) {
    using T = detail::ResultOf<Function, Arguments...>;
    std::promise<T> promise;
    auto future = promise.get_future();
    spawn_there(&detail::keep_promise<T, Function, Arguments...>, std::move(promise), std::move(function),
                std::move(arguments)...);
    return future;
  }
  template <typename Function, typename... Arguments>
  Task<detail::ResultOf<Function, Arguments...>> ask(Reactor& home, Function function, Arguments... arguments) {
    using T = detail::ResultOf<Function, Arguments...>;
    detail::RemoteAnswer<T> answer(home);
    spawn_there(&detail::bring_answer<T, Function, Arguments...>, &answer, std::move(function),
                std::move(arguments)...);
    co_return co_await answer;
  }

 private:
  template <typename... Everything>
  void spawn_there(Everything... everything) {
    reactor_->post_from_any_thread(
        [this, ... all = std::move(everything)]() mutable { scope_.spawn(std::move(all)...); });
  }

  std::unique_ptr<Reactor> reactor_;
  Scope scope_;  // used on the worker's thread only
  std::thread thread_;
};

}  // namespace cairn
