// What it costs on this machine to wake a thread that sleeps: the yardstick for polling or sleeping.
#pragma once

#include "base/time.h"

namespace cairn {

// Has two threads wake each other a few dozen times and takes the median. A few milliseconds.
Duration measure_wake_cost();

}  // namespace cairn
