#include "reactor/wake_cost.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

#include "base/assert.h"
#include "base/fd.h"

namespace cairn {

Duration measure_wake_cost() {
  constexpr size_t kRounds = 32;
  constexpr Duration kUnknown = microseconds(50);
  // Beside other load the figures mean little: a sleeper that happens to share the waker's core starts at once, one
  // whose core is taken starts after the others' time slices.
  constexpr Duration kLeast = microseconds(20);
  constexpr Duration kMost = microseconds(60);
  const SystemClock clock;
  const Fd event(eventfd(0, EFD_CLOEXEC));
  if (!event) return kUnknown;
  std::atomic<int64_t> sent_ns{0};
  std::array<int64_t, kRounds> costs{};
  std::atomic<size_t> received{0};

  std::thread sleeper([&] {
    for (size_t i = 0; i < kRounds; ++i) {
      uint64_t value = 0;
      // Interrupted (a signal, a debugger) it goes on: the other thread waits for it.
      while (::read(event.get(), &value, sizeof value) != sizeof value) ASSERT(errno == EINTR);
      costs[i] = clock.now().ns - sent_ns.load();
      received.store(i + 1);
    }
  });
  for (size_t i = 0; i < kRounds; ++i) {
    // Time for it to fall asleep; a pause that is long against a wake-up and short for whoever waits for us. Not
    // yielding: that would put the sleeper on this core.
    for (const Time start = clock.now(); clock.now() - start < microseconds(100);) __builtin_ia32_pause();
    sent_ns.store(clock.now().ns);
    const uint64_t one = 1;
    while (::write(event.get(), &one, sizeof one) != sizeof one) ASSERT(errno == EINTR);
    while (received.load() != i + 1) std::this_thread::yield();
  }
  sleeper.join();
  std::ranges::sort(costs);
  return std::clamp(Duration{costs[kRounds / 2]}, kLeast, kMost);
}

}  // namespace cairn
