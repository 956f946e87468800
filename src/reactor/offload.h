// Helper threads for work that must block: RocksDB reads that miss, name resolution. The coroutine waits and goes on
// on its own reactor.
//
//   OffloadPool helpers("kv", 4);
//   auto value = co_await offload(helpers, reactor, [&] { return store.read(key); });
//
// There is no queue limit here and no need of one: a job lives in the frame of the coroutine that waits for it, so
// whoever limits those limits the queue. A job can't be cancelled: the operation owns what it uses until it is done.
#pragma once

#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "reactor/reactor.h"
#include "reactor/remote.h"

namespace cairn {

class OffloadPool {
 public:
  struct Job {
    using Run = void (*)(Job&);
    explicit Job(Run function) : run(function) {}
    Run run;
  };

  // `name` shows in ps and perf, cut to 15 characters.
  OffloadPool(const std::string& name, size_t threads);
  OffloadPool(const OffloadPool&) = delete;
  OffloadPool& operator=(const OffloadPool&) = delete;
  // Runs what is queued, then joins the threads.
  ~OffloadPool();

  // Any thread.
  void submit(Job& job);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job*> jobs_;  // guarded by mutex_
  bool stopping_ = false;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

namespace detail {

template <typename Function, typename T>
class [[nodiscard]] OffloadAwaiter {
 public:
  OffloadAwaiter(OffloadPool& pool, Reactor& reactor, Function function)
      : pool_(pool), reactor_(reactor), function_(std::move(function)), job_(*this), back_(*this) {}
  OffloadAwaiter(const OffloadAwaiter&) = delete;
  OffloadAwaiter& operator=(const OffloadAwaiter&) = delete;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    handle_ = handle;
    pool_.submit(job_);
  }
  T await_resume() {
    if constexpr (!std::is_void_v<T>) return std::move(*result_);
  }

 private:
  struct Empty {};
  struct RunJob final : OffloadPool::Job {
    explicit RunJob(OffloadAwaiter& o) : Job(&run_on_helper), owner(o) {}
    static void run_on_helper(Job& job) {
      OffloadAwaiter& self = static_cast<RunJob&>(job).owner;
      if constexpr (std::is_void_v<T>) {
        self.function_();
      } else {
        self.result_.emplace(self.function_());
      }
      self.reactor_.enqueue(self.back_);  // the last touch: the frame may be gone afterwards
    }
    OffloadAwaiter& owner;
  };
  struct Back final : RemoteWork {
    explicit Back(OffloadAwaiter& o) : RemoteWork(&run_on_reactor), owner(o) {}
    static void run_on_reactor(RemoteWork& work) {
      OffloadAwaiter& self = static_cast<Back&>(work).owner;
      self.reactor_.hops().add();
      self.reactor_.post(self.handle_);
    }
    OffloadAwaiter& owner;
  };

  OffloadPool& pool_;
  Reactor& reactor_;
  Function function_;
  std::optional<std::conditional_t<std::is_void_v<T>, Empty, T>> result_;
  RunJob job_;
  Back back_;
  std::coroutine_handle<> handle_;
};

}  // namespace detail

// co_await: what `function` returns. Call it on the reactor's thread.
template <typename Function>
detail::OffloadAwaiter<Function, std::invoke_result_t<Function&>> offload(OffloadPool& pool, Reactor& reactor,
                                                                          Function function) {
  return {pool, reactor, std::move(function)};
}

}  // namespace cairn
