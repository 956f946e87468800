#include "reactor/spin_budget.h"

#include <algorithm>

namespace cairn {
namespace {

// The smallest budget worth a loop; below it the next step down is none.
constexpr Duration kStep = microseconds(5);
// How many sleeps a preemption counts. Few, so that one stray interrupt of a busy machine doesn't cost much.
constexpr int kHoldSleeps = 8;

}  // namespace

SpinBudget::SpinBudget(Mode mode, Duration wake_cost) : mode_(mode), wake_cost_(std::max(wake_cost, kStep)) {
  set_mode(mode);
}

void SpinBudget::set_mode(Mode mode) {
  mode_ = mode;
  hold_ = 0;
  switch (mode) {
    case Mode::performance:
      budget_ = Duration{INT64_MAX};
      break;
    case Mode::economy:
      budget_ = Duration{};
      break;
    case Mode::automatic:
      budget_ = wake_cost_;
      break;
  }
}

void SpinBudget::idle_ended(Duration gap, bool slept) {
  if (mode_ != Mode::automatic || !slept) return;  // caught while polling: the budget is right
  if (hold_ > 0) {
    --hold_;
    return;
  }
  if (gap <= max()) {
    // Straight to what would have caught this one with some room, but not at once to the most.
    budget_ = std::min({max(), std::max(budget_ * 2, kStep), gap * 2});
    budget_ = std::max(budget_, kStep);
  } else {
    budget_ = budget_ / 2;
    if (budget_ < kStep) budget_ = Duration{};
  }
}

void SpinBudget::preempted() {
  if (mode_ != Mode::automatic) return;
  budget_ = Duration{};
  hold_ = kHoldSleeps;
}

}  // namespace cairn
