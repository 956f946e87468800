// FdWatch: waits until a descriptor that isn't a connection becomes readable (signalfd, inotify, another library's
// event descriptor). Edge-triggered: after a wake-up, read until it would block.
#pragma once

#include "base/status.h"
#include "reactor/cancel.h"
#include "reactor/reactor.h"
#include "reactor/sync.h"
#include "reactor/task.h"

namespace cairn {

class FdWatch {
 public:
  // `fd` outlives the watch.
  FdWatch(Reactor& reactor, int fd);
  FdWatch(const FdWatch&) = delete;
  FdWatch& operator=(const FdWatch&) = delete;
  // Nobody waits.
  ~FdWatch();

  // One event since the last call, or the next one. One waiter at a time.
  Task<Result<void>> readable(CancelToken token = {});

 private:
  class Poll;
  Poll* poll_;
};

}  // namespace cairn
