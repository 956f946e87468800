#include "engine/map_image.h"

#include <utility>

#include "base/assert.h"
#include "engine/chunk_record.h"

namespace cairn::engine {

kv::Mutation MapImage::encode(ChunkId chunk) const {
  const auto found = chunks_.find(chunk);
  kv::Mutation mutation{.key = chunk_key(chunk), .value = std::nullopt};
  if (found != chunks_.end()) mutation.value = encode_chunk(found->second);
  return mutation;
}

void MapImage::before_change(ChunkId chunk) {
  if (active_ && waiting_.erase(chunk) > 0) {
    preserved_.push_back(encode(chunk));
    done_.push_back(chunk);
  }
  changed_.insert(chunk);
}

void MapImage::begin() {
  ASSERT(!active_ && waiting_.empty() && preserved_.empty() && done_.empty());
  active_ = true;
  waiting_ = std::exchange(changed_, {});
}

std::vector<kv::Mutation> MapImage::next(size_t bytes) {
  ASSERT(active_);
  std::vector<kv::Mutation> part = std::exchange(preserved_, {});
  size_t size = 0;
  for (const auto& mutation : part) size += mutation.key.size() + (mutation.value ? mutation.value->size() : 0);
  while (size < bytes && !waiting_.empty()) {
    const ChunkId chunk = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    part.push_back(encode(chunk));
    done_.push_back(chunk);
    size += part.back().key.size() + (part.back().value ? part.back().value->size() : 0);
  }
  return part;
}

void MapImage::end() {
  ASSERT(active_ && waiting_.empty() && preserved_.empty());
  active_ = false;
  done_.clear();
}

void MapImage::abort() {
  ASSERT(active_);
  active_ = false;
  changed_.insert(done_.begin(), done_.end());
  changed_.merge(waiting_);
  waiting_.clear();
  preserved_.clear();
  done_.clear();
}

}  // namespace cairn::engine
