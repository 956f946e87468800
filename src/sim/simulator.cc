#include "sim/simulator.h"

#include <algorithm>

#include "base/crc32c.h"

namespace cairn::sim {
namespace {

// What a round of a loop costs. Time must pass while work yields to itself, or a wait for a deadline would never end.
constexpr Duration kRoundCost = nanoseconds(200);
// Rounds in a row without any loop running out of work. A loop that spins so long doesn't wait for anything.
constexpr uint64_t kLivelockRounds = 20'000'000;

uint64_t derive(uint64_t seed, std::string_view purpose) {
  return (seed + 1) * 0x9e3779b97f4a7c15 ^ (uint64_t{crc32c(purpose.data(), purpose.size())} << 20);
}

}  // namespace

Simulator::Simulator(uint64_t seed) : seed_(seed), rng_(derive(seed, "environment")), trace_(*this) {}

Simulator::~Simulator() { ASSERT(loops_.empty()); }

SeededRng Simulator::make_rng(std::string_view purpose) const { return SeededRng(derive(seed_, purpose)); }

template <typename Wanted>
SimLoop* Simulator::pick(Wanted wanted) {
  const size_t count = loops_.size();
  if (count == 0) return nullptr;
  const size_t start = count == 1 ? 0 : rng_.below(count);
  for (size_t i = 0; i < count; ++i) {
    SimLoop* loop = loops_[(start + i) % count];
    if (wanted(*loop)) return loop;
  }
  return nullptr;
}

Time Simulator::next_timer() const {
  Time next = Time::never();
  for (SimLoop* loop : loops_) next = std::min(next, loop->timers().next());
  return next;
}

bool Simulator::step() { return step_until(Time::never()); }

bool Simulator::step_until(Time end) {
  // Timers that are due go first, as in a reactor's round; otherwise work that keeps itself ready would starve them.
  if (SimLoop* loop = pick([this](SimLoop& l) { return l.timers().next() <= now_; })) {
    const size_t fired = loop->timers().fire_due(now_);
    trace_.event("loop.timers", loop->number_, fired);
    if (!loop->has_ready()) return true;
  }
  if (SimLoop* loop = pick([](SimLoop& l) { return l.has_ready(); })) {
    const size_t ran = loop->run_ready();
    trace_.event("loop.round", loop->number_, ran);
    now_ = now_ + kRoundCost;
    return true;
  }
  const Time next = next_timer();
  if (next == Time::never() || next > end) return false;
  now_ = next;
  return true;
}

Simulator::Stop Simulator::run_until(const std::function<bool()>& done, Duration limit) {
  const Time end = now_ + limit;
  uint64_t busy_rounds = 0;
  while (!done()) {
    const Time before = now_;
    if (!step_until(end)) return next_timer() == Time::never() ? Stop::idle : Stop::time_limit;
    if (now_ >= end) return done() ? Stop::done : Stop::time_limit;
    busy_rounds = now_ - before > kRoundCost ? 0 : busy_rounds + 1;
    if (busy_rounds > kLivelockRounds) return Stop::livelock;
  }
  return Stop::done;
}

void Simulator::run_for(Duration duration) {
  const Time end = now_ + duration;
  while (now_ < end && step_until(end)) {
  }
  now_ = std::max(now_, end);
}

SimLoop::SimLoop(Simulator& simulator)
    : SimLoop(simulator, simulator.next_loop_number_,
              std::make_unique<SeededRng>(derive(simulator.seed(), "loop") +
                                          simulator.next_loop_number_ * 0x2545f4914f6cdd1d)) {}

SimLoop::SimLoop(Simulator& simulator, uint64_t number, std::unique_ptr<SeededRng> rng)
    : Loop(*rng), simulator_(simulator), own_rng_(std::move(rng)), number_(number) {
  ++simulator_.next_loop_number_;
  simulator_.loops_.push_back(this);
}

SimLoop::~SimLoop() {
  // What is still ready would run on objects that are gone: whoever ends a loop joins its work first.
  ASSERT(!has_ready());
  std::erase(simulator_.loops_, this);
}

}  // namespace cairn::sim
