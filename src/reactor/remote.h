// RemoteQueue: how other threads give work to a reactor. An intrusive stack that anyone pushes to without a lock and
// that the reactor empties once a round, oldest first; pushing to a reactor that sleeps wakes it, pushing to one that
// is awake costs no system call.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/fd.h"
#include "base/status.h"

namespace cairn {

// Something to run on the reactor's thread. Embedded in what it is about; belongs to the queue from push to run.
struct RemoteWork {
  using Run = void (*)(RemoteWork&);
  explicit RemoteWork(Run function) : run(function) {}
  RemoteWork(const RemoteWork&) = delete;
  RemoteWork& operator=(const RemoteWork&) = delete;

  Run run;
  RemoteWork* next = nullptr;
};

class RemoteQueue {
 public:
  static Result<Fd> make_event_fd();
  explicit RemoteQueue(Fd event) : event_(std::move(event)) {}
  RemoteQueue(const RemoteQueue&) = delete;
  RemoteQueue& operator=(const RemoteQueue&) = delete;

  // Any thread.
  void push(RemoteWork& work) noexcept;
  void wake() noexcept;

  // The reactor's thread, or none while the reactor doesn't run:
  // Fetches what has been pushed; afterwards pop() gives it out, oldest first, then nullptr.
  void fetch() noexcept;
  RemoteWork* pop() noexcept;
  // Takes `work` out again, if it is in here: its owner goes.
  void forget(RemoteWork& work) noexcept;
  bool empty() const noexcept { return fetched_ == nullptr && head_.load() == nullptr; }
  // Between prepare_sleep() and end_sleep(), a push makes event_fd() readable. Dekker's pattern: the sleeper announces
  // itself and then looks at the queue; the pusher pushes and then looks for sleepers; so one of them sees the other.
  // (Sequentially consistent operations rather than fences: ThreadSanitizer understands them.)
  void prepare_sleep() noexcept { sleeping_.store(true); }
  void end_sleep() noexcept { sleeping_.store(false); }
  int event_fd() const { return event_.get(); }

 private:
  // On lines of their own: the head is written by others at any time, the flag only around sleeping.
  alignas(64) std::atomic<RemoteWork*> head_{nullptr};
  alignas(64) std::atomic<bool> sleeping_{false};
  Fd event_;
  RemoteWork* fetched_ = nullptr;  // oldest first
};

}  // namespace cairn
