// Waiting for what a killed cairnd still holds. After SIGKILL the kernel ends io_uring's requests on its own time, and
// until then they hold its device and its sockets. A supervisor restarts at once and must not take that for a device or
// a port in use.
#pragma once

#include <chrono>
#include <thread>
#include <utility>

#include "base/status.h"
#include "base/time.h"

namespace cairn::node {

// Calls `make`, which returns a Result, again and again while it says Errc::busy, for at most `limit`.
template <typename Make>
auto while_busy(Duration limit, Make make) {
  const SystemClock clock;
  const Time give_up = clock.now() + limit;
  for (;;) {
    auto made = make();
    if (made.code() != Errc::busy || clock.now() >= give_up) return made;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace cairn::node
