// Guard: ends one direction's waits of a connection when they take too long. One timer per connection and direction,
// moved lazily: setting a limit for each of many short operations costs two stores, not two visits to the timer heap.
#pragma once

#include "reactor/cancel.h"
#include "reactor/loop.h"

namespace cairn::http {

class Guard {
 public:
  Guard(Loop& loop, CancelToken parent)
      : loop_(loop), parent_(parent), timer_(&on_time, this), callback_(parent, &on_parent, this) {
    if (parent.cancelled()) source_.cancel(parent.reason());
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { loop_.disarm(timer_); }

  // Cancelled with timed_out once the limit passes, and never usable again then; or with the parent's reason.
  CancelToken token() { return source_; }
  void set_limit(Time at) {
    limit_ = at;
    if (at != Time::never() && (!timer_.armed() || timer_.at() > at)) loop_.arm(timer_, at);
  }
  void clear_limit() { limit_ = Time::never(); }
  void cancel(Errc reason) { source_.cancel(reason); }

 private:
  static void on_time(void* self) {
    auto& guard = *static_cast<Guard*>(self);
    if (guard.limit_ == Time::never()) return;
    if (guard.loop_.now() >= guard.limit_) {
      guard.source_.cancel(Errc::timed_out);
    } else {
      guard.loop_.arm(guard.timer_, guard.limit_);
    }
  }
  static void on_parent(void* self) {
    auto& guard = *static_cast<Guard*>(self);
    guard.source_.cancel(guard.parent_.reason());
  }

  Loop& loop_;
  CancelToken parent_;
  CancelSource source_;
  Time limit_ = Time::never();
  Timer timer_;
  CancelCallback callback_;
};

}  // namespace cairn::http
