#include "base/time.h"

#include <ctime>

namespace cairn {
namespace {

int64_t read_clock(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

Time SystemClock::now() const { return {read_clock(CLOCK_MONOTONIC)}; }
int64_t SystemWallClock::unix_ns() const { return read_clock(CLOCK_REALTIME); }

}  // namespace cairn
