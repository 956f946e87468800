// FaultPlan: which faults a seed has. Each kind is on or off per seed, and most seeds have few: all at once would hide
// each other (a fenced device takes no more writes that could be lost).
#pragma once

#include <string>

#include "base/rng.h"
#include "sim/disk_faults.h"

namespace cairn::sim {

struct FaultPlan {
  // The disk.
  bool slow = false;
  bool read_errors = false;
  bool write_errors = false;
  bool flush_errors = false;
  bool sparse_full = false;  // the file system below the device fills up
  bool rot_data = false;
  bool rot_journal = false;
  bool rot_superblock = false;
  bool lying_data_writes = false;  // lost or misdirected, in the data area
  // The ordered map.
  bool store_busy = false;
  bool store_errors = false;
  // Crashes.
  bool crashes = true;
  CrashStyle crash_style = CrashStyle::mixed;
  uint32_t tear_bytes = 512;
  bool tear_to_garbage = false;

  static FaultPlan draw(Rng& rng);
  // Nothing but crashes: acknowledged data must be there, all of it, right, always.
  bool only_crashes() const;
  std::string to_string() const;
};

}  // namespace cairn::sim
