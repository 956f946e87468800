// Timers, kept in a heap by the Loop that they are armed on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace cairn {

// Calls `fire(argument)` once at or after its time. Owned by the caller, which disarms it before destroying it (the
// destructor asserts); rearm as often as you like.
class Timer {
 public:
  using Function = void (*)(void*);
  Timer(Function fire, void* argument) : fire_(fire), argument_(argument) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer();

  bool armed() const { return slot_ != kUnarmed; }
  Time at() const { return at_; }

 private:
  friend class TimerHeap;
  static constexpr size_t kUnarmed = SIZE_MAX;

  Function fire_;
  void* argument_;
  Time at_;
  uint64_t sequence_ = 0;   // timers of one instant fire in the order they were armed
  size_t slot_ = kUnarmed;  // Invariant: heap_[slot_] == this while armed
};

// A binary heap that knows where each timer stands, so that disarming costs O(log n).
class TimerHeap {
 public:
  void arm(Timer& timer, Time at);
  void disarm(Timer& timer);
  // Time::never() when empty.
  Time next() const { return heap_.empty() ? Time::never() : heap_.front()->at_; }
  // Fires what is due; timers armed by a callback wait for the next call. Returns how many fired.
  size_t fire_due(Time now);
  size_t size() const { return heap_.size(); }

 private:
  static bool before(const Timer& a, const Timer& b);
  void place(Timer* timer, size_t slot);
  void sift_up(size_t slot);
  void sift_down(size_t slot);

  static constexpr Time kNotFiring = {INT64_MIN};

  std::vector<Timer*> heap_;
  Time firing_ = kNotFiring;  // the time that fire_due() was called with, while it runs
  uint64_t next_sequence_ = 0;
};

}  // namespace cairn
