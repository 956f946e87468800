// What "auto" comes to on this machine.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "node/settings.h"

namespace cairn::node {

// What a process may use, which in a container is less than what the hardware has.
struct Machine {
  uint64_t cores = 1;
  uint64_t memory_bytes = 0;

  // From the affinity mask, the physical memory and the limits of the process's control groups.
  static Machine probe();
};

struct Resources {
  uint32_t reactors = 1;
  uint64_t arena_bytes = 0;  // all reactors together, a multiple of 2 MiB
  uint64_t engine_cache_bytes = 0;
  uint64_t store_cache_bytes = 0;
};

// `shards` of the device, or 0 while they aren't known; no reactor goes without one. Errors: invalid_argument when
// explicit settings contradict each other or the device, or can't fit the machine.
Result<Resources> resolve_resources(const NodeSettings& settings, const Machine& machine, uint32_t shards = 0);

// device.shards for a new device. Small devices get few: data is spread over shards by chance, so the first shard is
// full long before the last when each holds only a few chunks.
uint32_t resolve_shards(const NodeSettings& settings, const Machine& machine, uint64_t device_bytes);

// device.size for a new file on a file system with this much free space. no_space, with the cure, when even the
// smallest default doesn't fit.
Result<uint64_t> resolve_device_size(const NodeSettings& settings, uint64_t free_bytes);

}  // namespace cairn::node
