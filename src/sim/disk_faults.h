// What a simulated disk does besides its work. Rates are per million operations; 0 switches a fault off.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace cairn::sim {

// What becomes of the writes that no completed flush covers when the power goes.
enum class CrashStyle : uint8_t {
  keep_completed,  // a drive with power-loss protection: what completed stays, what was under way may be torn
  lose_unflushed,  // a cache that is simply gone
  mixed,           // each write stays, is lost or is torn, whatever its age: the order of writes means nothing
};

struct DiskFaults {
  Duration latency_min = microseconds(10);
  Duration latency_max = microseconds(100);
  uint32_t slow_ppm = 0;  // an operation takes up to slow_max
  Duration slow_max = seconds(2);

  uint32_t read_error_ppm = 0;
  uint32_t write_error_ppm = 0;  // some of the sectors may have been written
  uint32_t flush_error_ppm = 0;  // what it would have covered may be lost, even when a later flush succeeds

  // The drive lies: it acknowledges a write that goes nowhere, or elsewhere. Only writes that lie within
  // [lie_begin, lie_end), because nobody can find a lost write whose place nothing else points to.
  uint32_t lost_write_ppm = 0;
  uint32_t misdirected_write_ppm = 0;
  uint64_t lie_begin = 0;
  uint64_t lie_end = 0;

  // Places that were never written give no_space, as on a sparse file whose file system is full.
  bool full = false;

  CrashStyle crash_style = CrashStyle::mixed;
  uint32_t tear_bytes = 512;  // what is written whole or not at all: 512 or 4096
  // A torn write may leave sectors that are neither old nor new.
  bool tear_to_garbage = false;
  // Breaks the contract: flush() succeeds and makes nothing durable. For tests that check their checkers.
  bool lie_about_flush = false;
};

}  // namespace cairn::sim
