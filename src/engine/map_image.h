// MapImage: the chunk map as it was at one moment, written to the store piece by piece while the map goes on changing.
//
// Only chunks that changed since the image before are in it. One that is about to change again is encoded first
// (preserve), the others when their turn comes: copy on write, so nothing stands still for a checkpoint.
#pragma once

#include <set>
#include <vector>

#include "engine/chunk_map.h"
#include "kv/ordered_store.h"

namespace cairn::engine {

class MapImage {
 public:
  explicit MapImage(const ChunkMap& chunks) : chunks_(chunks) {}

  // Before each change of a chunk, its creation and removal included.
  void before_change(ChunkId chunk);
  bool has_changes() const { return !changed_.empty(); }
  size_t changes() const { return changed_.size(); }

  // What the map is now becomes the image.
  void begin();
  bool active() const { return active_; }
  // The next part, about `bytes` of it; empty when that was all.
  std::vector<kv::Mutation> next(size_t bytes);
  void end();
  // Not everything reached the store: its chunks count as changed again.
  void abort();

 private:
  kv::Mutation encode(ChunkId chunk) const;

  const ChunkMap& chunks_;
  std::set<ChunkId> changed_;  // since begin()
  bool active_ = false;
  std::set<ChunkId> waiting_;            // of the image, not encoded yet
  std::vector<kv::Mutation> preserved_;  // encoded early
  std::vector<ChunkId> done_;            // handed out
};

}  // namespace cairn::engine
