// Reactor: the loop of one core. Everything a core owns (sockets, disk requests, timers, memory, shards) is driven from
// here, on one thread, in rounds:
//
//   round:  time ─ completions ─ hot sockets ─ pollers ─ other threads' work ─ timers ─ what is ready ─ submit
//             │                                                                                           │
//             └── found something, or within the spin budget: next round ◄────────────────────────────────┤
//                                                                                                         │
//                   otherwise: cool the hot sockets, arm the pollers, sleep in one io_uring wait ◄─────────┘
//
// Performance mode never sleeps, economy mode never spins, automatic mode does what pays (spin_budget.h). A busy round
// takes one system call for all it submits, and none when it submits nothing.
//
//   CO_TRY / TRY(auto reactor, Reactor::create({.index = 0, .rng = rng, .registry = registry}));
//   auto result = reactor->run_task(&serve, reactor.get());   // or: spawn in a Scope, then run() until stop()
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/metrics.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/time.h"
#include "reactor/hot_list.h"
#include "reactor/loop.h"
#include "reactor/remote.h"
#include "reactor/scope.h"
#include "reactor/spin_budget.h"
#include "reactor/task.h"

namespace cairn {

class Ring;
struct RingOp;

// A source of events that the reactor asks each round.
class Poller {
 public:
  virtual ~Poller() = default;
  // Does what there is to do, a bounded piece of it. Returns how much it did, 0 for nothing.
  virtual size_t poll() = 0;
  // Before sleeping: from now on events must wake the reactor (by its ring, or by enqueue()). False when there is
  // something to do already: the reactor stays awake, and disarm() isn't called.
  virtual bool arm() { return true; }
  // After sleeping.
  virtual void disarm() {}
};

class Reactor final : public Loop {
 public:
  struct Options {
    uint32_t index = 0;
    Mode mode = Mode::automatic;
    Duration wake_cost = {};  // what waking this machine's threads costs; zero: measured now, in about 5 ms
    Rng& rng;
    Registry& registry;  // of this reactor alone
  };

  static Result<std::unique_ptr<Reactor>> create(Options options);
  // On no thread or its own; sockets and pollers are gone by then. Work that other threads gave and that didn't run is
  // dropped.
  ~Reactor() override;

  uint32_t index() const { return index_; }
  // Read once a round.
  Time now() const override { return now_; }

  // Runs rounds on the calling thread until stop(). The thread of the first run is the reactor's for good.
  void run();
  // Any thread, at any time: run() returns after its round. A stop before run() makes the next run() return at once.
  void stop() noexcept;
  // Runs the loop on the calling thread until std::invoke(function, arguments...), a Task<T>, has ended; for programs
  // and tests.
  template <typename Function, typename... Arguments>
  auto run_task(Function function, Arguments... arguments);

  Mode mode() const { return spin_.mode(); }
  // On the reactor's thread, or before it runs.
  void set_mode(Mode mode);
  const SpinBudget& spin_budget() const { return spin_; }

  // Where the time since the first run went; from any thread.
  struct TimeSpent {
    uint64_t work_ns = 0;
    uint64_t spin_ns = 0;
    uint64_t sleep_ns = 0;
  };
  TimeSpent time_spent() const {
    return {metrics_.work_ns.value(), metrics_.spin_ns.value(), metrics_.sleep_ns.value()};
  }

  void add_poller(Poller& poller);
  void remove_poller(Poller& poller);

  // From any thread: run this on the reactor's. For control work: each counts as a hop
  // (reactor_cross_thread_hops_total).
  void post_from_any_thread(std::move_only_function<void()> function);
  // The same without an allocation; `work` stays in place until it runs, or until forget() on the reactor's thread (or
  // while it doesn't run).
  void enqueue(RemoteWork& work) noexcept { remote_.push(work); }
  void forget(RemoteWork& work) noexcept { remote_.forget(work); }

  // --- For sockets, devices and the like, on the reactor's thread ---

  Ring& ring() { return *ring_; }
  HotList& hot() { return hot_; }
  // Whether trying again next round is better than a notification.
  bool spinning() const { return spin_.polls(); }
  // Operations that succeed at once don't suspend, so a busy peer could keep its coroutine running for ever. Each
  // round has so many turns; false: come back next round.
  bool take_turn() {
    if (turns_left_ == 0) return false;
    --turns_left_;
    return true;
  }
  Counter& hops() { return metrics_.hops; }

  // What the ring still refers to after its owner has gone. Deletes itself at its last completion; the reactor deletes
  // what is left when it goes itself.
  class Lingering {
   public:
    Lingering() = default;
    Lingering(const Lingering&) = delete;
    Lingering& operator=(const Lingering&) = delete;
    virtual ~Lingering();

   private:
    friend class Reactor;
    Lingering** head_ = nullptr;  // of the list it is in
    Lingering* previous_ = nullptr;
    Lingering* next_ = nullptr;
  };
  void linger(Lingering& object);

 private:
  struct Metrics {
    explicit Metrics(Registry& registry);
    Counter& rounds;
    Counter& work_ns;
    Counter& spin_ns;
    Counter& sleep_ns;
    Counter& sleeps;
    Counter& performance_ns;
    Counter& economy_ns;
    Counter& mode_switches;
    Counter& woken_by_io;
    Counter& woken_by_thread;
    Counter& woken_by_timer;
    Counter& woken_by_nothing;
    Counter& preemptions;
    Counter& hops;
    Gauge& spin_budget_us;
  };
  class WakeUps;

  static constexpr unsigned kRingEntries = 1024;
  static constexpr uint32_t kTurns = 64;
  static constexpr size_t kHotTries = 4;  // a round
  // Nothing should depend on it: a wake-up that got lost costs this much, once.
  static constexpr Duration kSafetyNet = seconds(1);

  Reactor(const Options& options, std::unique_ptr<Ring> ring, Fd event);
  void bind_to_this_thread();
  void round();
  size_t poll_sources();
  size_t poll_hot();
  size_t run_remote();
  bool may_sleep();
  void sleep_until_event();
  void count_wake_up();
  void count_mode_time(Duration time);
  void look_for_mode_switch();
  void look_for_preemption();

  SystemClock clock_;
  uint32_t index_;
  Time now_;
  Metrics metrics_;
  std::unique_ptr<Ring> ring_;
  RemoteQueue remote_;
  std::unique_ptr<WakeUps> wake_ups_;
  HotList hot_;
  Lingering* lingering_ = nullptr;
  std::vector<Poller*> pollers_;
  SpinBudget spin_;
  bool polls_;  // spin_.polls() as it was counted last
  std::atomic<bool> stop_{false};
  std::optional<pthread_t> thread_;

  Time last_event_;       // when a round last found something
  bool slept_ = false;    // since then
  bool was_busy_ = true;  // the last round found something
  uint32_t turns_left_ = kTurns;
  int64_t involuntary_switches_ = 0;
  Time next_preemption_look_;
};

namespace detail {

template <typename T, typename Function, typename... Arguments>
Task<void> run_then_stop(Reactor* reactor, std::optional<T>* result, Function function, Arguments... arguments) {
  result->emplace(co_await std::invoke(std::move(function), std::move(arguments)...));
  reactor->stop();
}

template <typename Function, typename... Arguments>
Task<void> run_then_stop_void(Reactor* reactor, Function function, Arguments... arguments) {
  co_await std::invoke(std::move(function), std::move(arguments)...);
  reactor->stop();
}

}  // namespace detail

template <typename Function, typename... Arguments>
auto Reactor::run_task(Function function, Arguments... arguments) {
  using Awaited = decltype(std::invoke(std::declval<Function>(), std::declval<Arguments>()...));
  using T = decltype(std::declval<Awaited>().operator co_await().await_resume());
  bind_to_this_thread();
  Scope scope(*this);
  if constexpr (std::is_void_v<T>) {
    scope.spawn(&detail::run_then_stop_void<Function, Arguments...>, this, std::move(function),
                std::move(arguments)...);
    while (scope.running() > 0) run();
  } else {
    std::optional<T> result;
    scope.spawn(&detail::run_then_stop<T, Function, Arguments...>, this, &result, std::move(function),
                std::move(arguments)...);
    while (scope.running() > 0) run();
    return std::move(*result);
  }
}

}  // namespace cairn
