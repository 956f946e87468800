// An empty shard on a device.
#pragma once

#include "base/status.h"
#include "engine/block_device.h"
#include "engine/geometry.h"
#include "mem/pool.h"
#include "reactor/task.h"

namespace cairn::engine {

// Where the journal of a fresh shard begins: somewhere in the second lap. Not in the first, so that positions before
// the tail are never negative; and for each shard elsewhere, so that the ring's end is met early and often, and not for
// the first time when a device has been in use for a month.
Lsn first_lsn(const ShardExtent& extent);

// Zero-fills superblocks and journal, then writes the first superblock. Durable when it returns ok.
Task<Result<void>> format_shard(BlockDevice& device, mem::Pool& pool, ShardExtent extent);

}  // namespace cairn::engine
