// Trace: everything that happens in a simulation, as one 64-bit hash. The same seed must give the same hash: if it does
// not, something in the code under test or in the simulator depends on addresses, hash order, uninitialised memory or
// the real clock, and no failing seed could be repeated.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>

#include "base/time.h"

namespace cairn::sim {

class Trace {
 public:
  explicit Trace(const Clock& clock) : clock_(clock) {}
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // What happened, with up to four figures that describe it. `what` is a short fixed name ("disk.write").
  void event(std::string_view what, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0);
  // For content: a figure to pass to event().
  static uint64_t hash_of(std::span<const std::byte> bytes);

  uint64_t hash() const { return hash_; }
  uint64_t events() const { return events_; }
  // Prints every event as a line from now on; null: no more.
  void print_to(std::FILE* out) { out_ = out; }
  bool printing() const { return out_ != nullptr; }

 private:
  void mix(uint64_t value);

  const Clock& clock_;
  uint64_t hash_ = 0x243f6a8885a308d3;  // pi: a start that isn't zero
  uint64_t events_ = 0;
  std::FILE* out_ = nullptr;
};

}  // namespace cairn::sim
