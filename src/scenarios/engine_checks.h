// What a shard's answers must be, given the model.
#pragma once

#include "scenarios/engine_world.h"

namespace cairn::scenarios {

// A read and its check. Checks that the answer is one that some moment of the call allows.
Task<void> checked_read(EngineWorld& world, engine::ChunkId chunk, uint32_t offset, uint32_t length,
                        CancelToken cancel = {});

// Answers that take no time: they must be exactly the model's.
void check_stat(EngineWorld& world, engine::ChunkId chunk);
void check_list(EngineWorld& world, engine::ChunkId after, size_t limit);
void check_usage(EngineWorld& world);

// Everything: every chunk with all its bytes, the list, the keys. Nothing else may be going on. Pages may be reported
// as corrupt only as far as faults explain it.
Task<void> check_everything(EngineWorld& world);

}  // namespace cairn::scenarios
