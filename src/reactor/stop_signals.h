// TERM and INT as something to wait for. The first asks for a graceful stop, the second for an immediate end.
#pragma once

#include <csignal>

#include "base/time.h"

namespace cairn {

// Made before any thread is, so that all inherit the blocked signals. HUP and PIPE are ignored: a lost terminal or a
// closed log pipe is no reason to stop serving.
class StopSignals {
 public:
  StopSignals();

  // True when a signal has come; waits at most that long for one.
  bool wait(Duration limit);
  // Until a signal comes.
  void wait();
  // From now on the next signal ends the process at once, by its default action.
  void let_the_next_one_kill();

 private:
  sigset_t set_;
};

}  // namespace cairn
