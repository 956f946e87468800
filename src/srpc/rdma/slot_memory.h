// SlotMemory: registered memory for the slots of many queue pairs, in slabs, because devices have few keys and
// registering is slow. Peers can't reach it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mem/arena.h"
#include "srpc/rdma/rdma_metrics.h"
#include "srpc/rdma/verbs.h"

namespace cairn::srpc::rdma {

class SlotMemory {
 public:
  struct Block {
    std::span<std::byte> bytes;
    uint32_t key = 0;
    size_t slab = 0;
  };

  // All blocks are of one size. The domain outlives it.
  SlotMemory(VerbsDomain& domain, RdmaMetrics& metrics, size_t block_bytes);
  SlotMemory(const SlotMemory&) = delete;
  SlotMemory& operator=(const SlotMemory&) = delete;
  // All blocks are back.
  ~SlotMemory();

  VerbResult<Block> take();
  void give_back(const Block& block);

 private:
  struct Slab {
    mem::Arena arena;
    std::unique_ptr<VerbsMemory> registered;  // destroyed before the arena
    std::vector<std::span<std::byte>> free;
    size_t blocks = 0;
  };

  VerbResult<std::unique_ptr<Slab>> make_slab() const;
  void drop_spare(size_t index);

  VerbsDomain& domain_;
  RdmaMetrics& metrics_;
  size_t block_bytes_;
  std::vector<std::unique_ptr<Slab>> slabs_;  // null: dropped
};

}  // namespace cairn::srpc::rdma
