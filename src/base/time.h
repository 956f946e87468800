// Time as core modules see it: handed in, never read from the system, so that the simulator decides what it is.
#pragma once

#include <compare>
#include <cstdint>

namespace cairn {

// A span of time in nanoseconds; may be negative.
struct Duration {
  int64_t ns = 0;

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr int64_t us() const { return ns / 1'000; }
  constexpr int64_t ms() const { return ns / 1'000'000; }
  constexpr double seconds() const { return static_cast<double>(ns) / 1e9; }
  friend constexpr Duration operator+(Duration a, Duration b) { return {a.ns + b.ns}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return {a.ns - b.ns}; }
  friend constexpr Duration operator*(Duration a, int64_t factor) { return {a.ns * factor}; }
  friend constexpr Duration operator/(Duration a, int64_t divisor) { return {a.ns / divisor}; }
};

constexpr Duration nanoseconds(int64_t n) { return {n}; }
constexpr Duration microseconds(int64_t n) { return {n * 1'000}; }
constexpr Duration milliseconds(int64_t n) { return {n * 1'000'000}; }
constexpr Duration seconds(int64_t n) { return {n * 1'000'000'000}; }

// A point of monotonic time: nanoseconds since some start. Means nothing in another process or after a restart.
struct Time {
  int64_t ns = 0;

  constexpr auto operator<=>(const Time&) const = default;
  // Later than everything: "no deadline".
  static constexpr Time never() { return {INT64_MAX}; }
  friend constexpr Duration operator-(Time a, Time b) { return {a.ns - b.ns}; }
  // Saturates at never(), so that a deadline can be computed without a check.
  friend constexpr Time operator+(Time a, Duration d) {
    if (d.ns > 0 && a.ns > INT64_MAX - d.ns) return never();
    return {a.ns + d.ns};
  }
};

// Monotonic time. Reading it is cheap: a reactor reads the system's clock once a round.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};

// Calendar time, for what users see (Last-Modified) and for signatures with a validity. Nothing that must be correct
// may be decided by it: it jumps.
class WallClock {
 public:
  virtual ~WallClock() = default;
  // Nanoseconds since 1970-01-01T00:00:00Z.
  virtual int64_t unix_ns() const = 0;
};

// The system's clocks, for programs and never for core modules.
class SystemClock final : public Clock {
 public:
  Time now() const override;
};
class SystemWallClock final : public WallClock {
 public:
  int64_t unix_ns() const override;
};

}  // namespace cairn
