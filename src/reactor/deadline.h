// A deadline as a cancel source: its token is cancelled with Errc::timed_out at the deadline, or with the parent's
// reason when the parent is cancelled.
//
//   Deadline deadline(loop, context.deadline, context.cancel);
//   CO_TRY(co_await event.wait(deadline.token()));
#pragma once

#include "reactor/cancel.h"
#include "reactor/loop.h"

namespace cairn {

class Deadline {
 public:
  Deadline(Loop& loop, Time at, CancelToken parent = {})
      : loop_(loop), parent_(parent), timer_(&on_time, this), callback_(parent, &on_parent, this) {
    if (parent.cancelled()) {
      source_.cancel(parent.reason());
    } else if (at <= loop.now()) {
      source_.cancel(Errc::timed_out);
    } else if (at != Time::never()) {
      loop.arm(timer_, at);
    }
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline() { loop_.disarm(timer_); }

  CancelToken token() { return source_; }

 private:
  static void on_time(void* self) { static_cast<Deadline*>(self)->source_.cancel(Errc::timed_out); }
  static void on_parent(void* self) {
    auto& deadline = *static_cast<Deadline*>(self);
    deadline.source_.cancel(deadline.parent_.reason());
  }

  Loop& loop_;
  CancelToken parent_;
  CancelSource source_;
  Timer timer_;
  CancelCallback callback_;
};

}  // namespace cairn
