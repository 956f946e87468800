// A device's format and identity. Formatting is the only thing that ever overwrites what another program left, and only
// when asked to.
//
//   auto device = co_await open_device(context);           // not_found: blank
//   auto device = co_await format_device(context, {.cluster = id});
//   Shard::open(..., device.extent(i), ...)
#pragma once

#include "base/id.h"
#include "base/rng.h"
#include "base/status.h"
#include "engine/block_device.h"
#include "engine/geometry.h"
#include "engine/shard.h"
#include "mem/pool.h"
#include "reactor/task.h"

namespace cairn::engine {

struct DeviceContext {
  BlockDevice& device;
  mem::Pool& pool;
};

struct DeviceInfo {
  Id128 device;
  Id128 cluster;
  DeviceGeometry geometry;

  ShardExtent extent(uint32_t shard) const;
};

struct FormatOptions {
  Id128 cluster;
  uint32_t shards = 8;
  // Overwrite whatever is there. Without it, only a blank device (zeroes at its head) is formatted, or one whose
  // formatting was interrupted, which never held anything.
  bool force = false;
};

// Writes the header as "formatting", zero-fills the journals, so that journal writes are overwrites from the first one,
// writes the superblocks, and only then the header as "ready". Errors: already_exists (something is there, or another
// Cairn device), unsupported (a newer Cairn device), invalid_argument (too small, with the minimum), io_error.
Task<Result<DeviceInfo>> format_device(DeviceContext context, FormatOptions options, Rng& rng);

// Errors: not_found (blank), already_exists (holds something that isn't Cairn's), unsupported (written by a newer
// release), unavailable (half formatted: format it again), corrupt (both copies of the header are damaged),
// invalid_argument (smaller than it was), io_error. Messages say what to do.
Task<Result<DeviceInfo>> open_device(DeviceContext context);

}  // namespace cairn::engine
