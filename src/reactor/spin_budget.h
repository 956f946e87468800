// SpinBudget: for how long an idle reactor polls before it sleeps.
//
// Sleeping saves a core and costs each event a wake-up. Polling for as long as a wake-up costs loses at most a factor
// of two against knowing the future, so that is where the budget starts; from there it follows what happens:
//   - an event came soon after the reactor had gone to sleep: a larger budget would have caught it: grow
//   - nothing came for long: shrink, in the end to nothing, so that an idle reactor doesn't poll at all
//   - the kernel took the core away while we polled: somebody needs it more: give the budget up for a while
#pragma once

#include <cstdint>

#include "base/time.h"

namespace cairn {

enum class Mode : uint8_t {
  performance,  // polls without pause
  economy,      // never polls: each event costs a wake-up, an idle moment costs nothing
  automatic,    // polls while that pays
};

class SpinBudget {
 public:
  // Beyond this an idle gap is no reason to poll. Several times what a wake-up costs, because when the peer sleeps,
  // too, a gap holds its wake-up and ours: with less the two would never find out that polling serves both.
  static constexpr int64_t kMaxWakeCosts = 6;

  SpinBudget(Mode mode, Duration wake_cost);

  Mode mode() const { return mode_; }
  void set_mode(Mode mode);
  Duration wake_cost() const { return wake_cost_; }
  Duration max() const { return wake_cost_ * kMaxWakeCosts; }
  // How long to poll from the last event on. Zero: not at all.
  Duration budget() const { return budget_; }
  // In which of the two modes the reactor is now, automatic or not: performance while an idle moment is polled through
  // (up to the budget), economy when it sleeps at once.
  bool polls() const { return budget_.ns > 0; }

  // An event ended an idle gap. `slept`: the reactor was asleep by then.
  void idle_ended(Duration gap, bool slept);
  // The reactor lost its core against its will while it polled.
  void preempted();

 private:
  Mode mode_;
  Duration wake_cost_;
  Duration budget_;
  int hold_ = 0;  // sleeps to go before growing is allowed again
};

}  // namespace cairn
