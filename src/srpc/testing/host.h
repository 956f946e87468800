// For tests and benchmarks: one reactor with what SRPC needs around it, on the calling thread or on one of its own.
#pragma once

#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "base/metrics.h"
#include "base/rng.h"
#include "mem/arena.h"
#include "mem/home_mail.h"
#include "mem/pool.h"
#include "reactor/reactor.h"
#include "reactor/scope.h"
#include "srpc/channel.h"
#include "srpc/shm/shm_poll_group.h"
#include "srpc/tcp/tcp_poll_group.h"

namespace cairn::srpc::testing {

class Host {
 public:
  explicit Host(uint32_t index, Mode mode = Mode::automatic, size_t memory = size_t{48} << 20, size_t request_bytes = 0)
      : rng(index + 1),
        reactor(*Reactor::create(
            {.index = index, .mode = mode, .wake_cost = microseconds(50), .rng = rng, .registry = registry})),
        arena(*mem::Arena::create(memory)),
        pool(*reactor, registry, arena.memory(), memory / 8, request_bytes),
        mail(*reactor, pool),
        metrics(registry),
        tcp(std::make_unique<tcp::TcpPollGroup>(*reactor, pool)),
        shm(std::make_unique<shm::ShmPollGroup>(*reactor, registry, pool)) {}
  ~Host();

  // From now on the reactor runs on a thread of its own.
  void start_thread() {
    thread_ = std::thread([this] {
      pool.bind_to_this_thread();
      reactor->run();
    });
  }
  // For good: the reactor doesn't run on another thread afterwards.
  void stop_thread();
  bool threaded() const { return thread_.joinable(); }

  // Runs a coroutine on the reactor and waits for its end.
  template <typename Function, typename... Arguments>
  auto run(Function function, Arguments... arguments) {
    using T = decltype(std::invoke(function, arguments...).operator co_await().await_resume());
    if (!threaded()) return reactor->run_task(std::move(function), std::move(arguments)...);
    std::promise<T> promise;
    Scope scope(*reactor);
    reactor->post_from_any_thread(
        [&] { scope.spawn(&keep<T, Function, Arguments...>, &promise, std::move(function), std::move(arguments)...); });
    auto future = promise.get_future();
    future.wait();
    // The scope's last touch comes after the promise's.
    std::promise<void> quiet;
    reactor->post_from_any_thread([&] { quiet.set_value(); });
    quiet.get_future().wait();
    return future.get();
  }
  // Runs a function there.
  template <typename Function>
  auto call(Function function) {
    return run(&invoke<Function>, std::move(function));
  }

  Registry registry;
  SeededRng rng;
  std::unique_ptr<Reactor> reactor;
  mem::Arena arena;
  mem::Pool pool;
  mem::HomeMail mail;
  ChannelMetrics metrics;
  std::unique_ptr<tcp::TcpPollGroup> tcp;
  std::unique_ptr<shm::ShmPollGroup> shm;

 private:
  template <typename T, typename Function, typename... Arguments>
  static Task<void> keep(std::promise<T>* promise, Function function, Arguments... arguments) {
    if constexpr (std::is_void_v<T>) {
      co_await std::invoke(std::move(function), std::move(arguments)...);
      promise->set_value();
    } else {
      promise->set_value(co_await std::invoke(std::move(function), std::move(arguments)...));
    }
  }
  template <typename Function>
  static Task<std::invoke_result_t<Function&>> invoke(Function function) {
    co_return function();
  }
  static Task<void> close(Host* host) {
    co_await host->tcp->close();
    co_await host->shm->close();
  }

  std::thread thread_;
  bool closed_ = false;
};

inline void Host::stop_thread() {
  if (!thread_.joinable()) return;
  run(&close, this);
  closed_ = true;
  reactor->stop();
  thread_.join();
  pool.bind_to_this_thread();
}

inline Host::~Host() {
  stop_thread();
  if (!closed_) run(&close, this);
}

}  // namespace cairn::srpc::testing
