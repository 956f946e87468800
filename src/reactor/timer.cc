#include "reactor/timer.h"

#include "base/assert.h"

namespace cairn {

Timer::~Timer() { ASSERT(!armed()); }

bool TimerHeap::before(const Timer& a, const Timer& b) {
  return a.at_ != b.at_ ? a.at_ < b.at_ : a.sequence_ < b.sequence_;
}

void TimerHeap::place(Timer* timer, size_t slot) {
  heap_[slot] = timer;
  timer->slot_ = slot;
}

void TimerHeap::sift_up(size_t slot) {
  Timer* timer = heap_[slot];
  while (slot > 0) {
    const size_t parent = (slot - 1) / 2;
    if (!before(*timer, *heap_[parent])) break;
    place(heap_[parent], slot);
    slot = parent;
  }
  place(timer, slot);
}

void TimerHeap::sift_down(size_t slot) {
  Timer* timer = heap_[slot];
  for (;;) {
    size_t child = 2 * slot + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(*heap_[child + 1], *heap_[child])) ++child;
    if (!before(*heap_[child], *timer)) break;
    place(heap_[child], slot);
    slot = child;
  }
  place(timer, slot);
}

void TimerHeap::arm(Timer& timer, Time at) {
  if (timer.armed()) disarm(timer);
  // While timers fire, a new one that is due already would stand before older ones in the heap and hold them up:
  // fire_due() stops at the first new one. With the time of the firing it stands behind them.
  timer.at_ = at < firing_ ? firing_ : at;
  timer.sequence_ = next_sequence_++;
  heap_.push_back(&timer);
  sift_up(heap_.size() - 1);
}

void TimerHeap::disarm(Timer& timer) {
  if (!timer.armed()) return;
  const size_t slot = timer.slot_;
  ASSERT(heap_[slot] == &timer);
  timer.slot_ = Timer::kUnarmed;
  Timer* last = heap_.back();
  heap_.pop_back();
  if (last == &timer) return;
  place(last, slot);
  sift_up(slot);
  sift_down(last->slot_);
}

size_t TimerHeap::fire_due(Time now) {
  const uint64_t armed_before = next_sequence_;
  size_t fired = 0;
  firing_ = now;
  while (!heap_.empty()) {
    Timer& timer = *heap_.front();
    if (timer.at_ > now || timer.sequence_ >= armed_before) break;
    disarm(timer);
    ++fired;
    timer.fire_(timer.argument_);
  }
  firing_ = kNotFiring;
  return fired;
}

}  // namespace cairn
