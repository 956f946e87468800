// What each RDMA connection of a poll group gets.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace cairn::srpc::rdma {

// Where a device can't do as much it is less.
struct QueueOptions {
  uint16_t slots = 32;            // receives that are kept posted; slot.h has the limits
  uint32_t slot_bytes = 4096;     // of each, header included
  uint16_t one_sided_depth = 64;  // READs and WRITEs in the send queue
  uint16_t read_depth = 16;       // READs among them
  uint32_t inline_bytes = 188;    // sent without the device reading our memory
  // A port may be down for so long before its connections end, and with them their calls find another way.
  Duration port_grace = milliseconds(300);
  // For what was sent before the end to arrive.
  Duration drain = milliseconds(250);
};

}  // namespace cairn::srpc::rdma
