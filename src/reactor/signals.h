// Signals as something to await, instead of handlers that may do next to nothing.
//
//   TRY(auto signals, Signals::block({SIGTERM, SIGINT}));        // in main, before any thread is started
//   ...
//   CO_TRY(int signal, co_await signals.next(reactor, token));
#pragma once

#include <initializer_list>

#include "base/fd.h"
#include "base/status.h"
#include "reactor/cancel.h"
#include "reactor/reactor.h"
#include "reactor/task.h"

namespace cairn {

class Signals {
 public:
  // From now on these signals wait here. Threads inherit the mask, which is why this comes before they start.
  static Result<Signals> block(std::initializer_list<int> signals);

  // The number of the next one. One call at a time.
  Task<Result<int>> next(Reactor& reactor, CancelToken token = {});

 private:
  explicit Signals(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace cairn
