// Simulator: one world of simulated time. Any number of SimLoops (one per simulated reactor), disks and networks live
// in it, all run by the one thread that calls run_*(), all decided by one seed.
//
//   Simulator sim(seed);
//   SimLoop loop(sim);                                  // give it to the code under test as its Loop
//   auto result = sim.run(loop, &Shard::checkpoint, shard.get());   // runs the world until the task has ended
//
// What is random (from the seed) and why: which loop runs next when several are ready, and which loop's timers fire
// first when they are due at one instant, because nothing promises an order between reactors. Within one loop the order
// is the one that Loop promises: posts in order, timers by time and then in the order of arming.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/rng.h"
#include "base/time.h"
#include "reactor/loop.h"
#include "reactor/scope.h"
#include "reactor/task.h"
#include "sim/trace.h"

namespace cairn::sim {

class SimLoop;

class Simulator final : public Clock {
 public:
  explicit Simulator(uint64_t seed);
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;
  // All loops are gone.
  ~Simulator() override;

  Time now() const override { return now_; }
  uint64_t seed() const { return seed_; }
  // The environment's own stream: faults, latencies, the order of what is simultaneous. The code under test draws from
  // its loop's, so that a change there doesn't change the faults it meets.
  Rng& rng() { return rng_; }
  // Another independent stream, the same for the same seed and purpose.
  SeededRng make_rng(std::string_view purpose) const;
  Trace& trace() { return trace_; }

  enum class Stop : uint8_t {
    done,        // the condition holds
    idle,        // nothing is ready and no timer is armed: nothing will ever happen again
    time_limit,  // so much simulated time has passed
    livelock,    // so many rounds without simulated time passing beyond the cost of the rounds themselves
  };
  // Runs until `done()` holds, looked at after each round.
  Stop run_until(const std::function<bool()>& done, Duration limit);
  // Lets time pass: ends at now() + duration, or a round later when the loops are busy then.
  void run_for(Duration duration);
  // One round of one loop, or a jump to the next timer. False when there is nothing to do.
  bool step();

  // Starts std::invoke(function, arguments...), a Task<T>, on `loop` and runs the world until it has ended. A task that
  // doesn't end within `kTaskLimit` of simulated time is a bug: asserts.
  template <typename Function, typename... Arguments>
  auto run(SimLoop& loop, Function function, Arguments... arguments);

  static constexpr Duration kTaskLimit = seconds(3600);

 private:
  friend class SimLoop;
  template <typename T, typename Function, typename... Arguments>
  static Task<void> store_result(std::optional<T>* result, Function function, Arguments... arguments) {
    result->emplace(co_await std::invoke(std::move(function), std::move(arguments)...));
  }
  template <typename Function, typename... Arguments>
  static Task<void> mark_done(bool* done, Function function, Arguments... arguments) {
    co_await std::invoke(std::move(function), std::move(arguments)...);
    *done = true;
  }
  // The first of the loops for which `wanted` holds, beginning at a random one.
  template <typename Wanted>
  SimLoop* pick(Wanted wanted);
  Time next_timer() const;
  // As step(), but doesn't jump beyond `end`.
  bool step_until(Time end);

  uint64_t seed_;
  SeededRng rng_;
  Time now_;
  Trace trace_;
  std::vector<SimLoop*> loops_;
  uint64_t next_loop_number_ = 0;  // never reused: a restarted node draws other random numbers
};

// The Loop of one simulated reactor.
class SimLoop final : public Loop {
 public:
  explicit SimLoop(Simulator& simulator);
  ~SimLoop() override;

  Time now() const override { return simulator_.now(); }
  Simulator& simulator() { return simulator_; }

 private:
  friend class Simulator;
  SimLoop(Simulator& simulator, uint64_t number, std::unique_ptr<SeededRng> rng);

  Simulator& simulator_;
  std::unique_ptr<SeededRng> own_rng_;
  uint64_t number_;
};

template <typename Function, typename... Arguments>
auto Simulator::run(SimLoop& loop, Function function, Arguments... arguments) {
  using T = decltype(std::invoke(function, arguments...).operator co_await().await_resume());
  Scope scope(loop);
  if constexpr (std::is_void_v<T>) {
    bool done = false;
    scope.spawn(&Simulator::mark_done<Function, Arguments...>, &done, std::move(function), std::move(arguments)...);
    const Stop stop = run_until([&] { return scope.running() == 0; }, kTaskLimit);
    ASSERT(stop == Stop::done && done);
  } else {
    std::optional<T> result;
    scope.spawn(&Simulator::store_result<T, Function, Arguments...>, &result, std::move(function),
                std::move(arguments)...);
    const Stop stop = run_until([&] { return scope.running() == 0; }, kTaskLimit);
    ASSERT(stop == Stop::done && result.has_value());
    return std::move(*result);
  }
}

}  // namespace cairn::sim
