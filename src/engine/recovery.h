// Opening a shard: superblock, chunk map from the store, journal, and then a new life of the journal, so that what was
// cut can never come back.
#pragma once

#include <memory>

#include "base/status.h"
#include "engine/shard.h"
#include "reactor/task.h"

namespace cairn::engine {

Task<Result<std::unique_ptr<Shard>>> recover_shard(Shard::Context context, ShardExtent extent, ShardOptions options);

}  // namespace cairn::engine
