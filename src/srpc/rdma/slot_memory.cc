#include "srpc/rdma/slot_memory.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.h"

namespace cairn::srpc::rdma {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

SlotMemory::SlotMemory(VerbsDomain& domain, RdmaMetrics& metrics, size_t block_bytes)
    : domain_(domain), metrics_(metrics), block_bytes_((block_bytes + kPage - 1) / kPage * kPage) {}

SlotMemory::~SlotMemory() {
  for (auto& slab : slabs_) {
    if (slab == nullptr) continue;
    ASSERT(slab->free.size() == slab->blocks);
    metrics_.slabs_changed(-1, slab->arena.memory().size());
  }
}

VerbResult<SlotMemory::Block> SlotMemory::take() {
  const auto has_free = [](const auto& slab) { return slab != nullptr && !slab->free.empty(); };
  auto found = std::ranges::find_if(slabs_, has_free);
  if (found == slabs_.end()) {
    auto slab = make_slab();
    if (!slab) return std::unexpected(slab.error());
    metrics_.slabs_changed(1, (*slab)->arena.memory().size());
    found = std::ranges::find_if(slabs_, [](const auto& slab) { return slab == nullptr; });
    if (found == slabs_.end()) found = slabs_.insert(found, nullptr);
    *found = *std::move(slab);
  }
  Slab& slab = **found;
  const std::span<std::byte> bytes = slab.free.back();
  slab.free.pop_back();
  return Block{bytes, slab.registered->local_key(), static_cast<size_t>(found - slabs_.begin())};
}

VerbResult<std::unique_ptr<SlotMemory::Slab>> SlotMemory::make_slab() const {
  auto arena = mem::Arena::create(block_bytes_);  // rounded up to a huge page
  if (!arena) return std::unexpected(VerbError{Verb::reg_mr, ENOMEM});
  auto registered = domain_.register_memory(arena->memory(), {});
  if (!registered) return std::unexpected(registered.error());
  auto slab = std::make_unique<Slab>(Slab{*std::move(arena), *std::move(registered), {}, 0});
  const auto memory = slab->arena.memory();
  for (size_t at = 0; at + block_bytes_ <= memory.size(); at += block_bytes_) {
    slab->free.push_back(memory.subspan(at, block_bytes_));
  }
  slab->blocks = slab->free.size();
  return slab;
}

void SlotMemory::give_back(const Block& block) {
  Slab& slab = *slabs_[block.slab];
  slab.free.push_back(block.bytes);
  ASSERT(slab.free.size() <= slab.blocks);
  if (slab.free.size() == slab.blocks) drop_spare(block.slab);
}

// One that is empty is kept, so that a client which comes and goes doesn't make and drop one each time.
void SlotMemory::drop_spare(size_t index) {
  const auto is_empty = [](const auto& slab) { return slab != nullptr && slab->free.size() == slab->blocks; };
  if (std::ranges::count_if(slabs_, is_empty) < 2) return;
  metrics_.slabs_changed(-1, slabs_[index]->arena.memory().size());
  slabs_[index].reset();
}

}  // namespace cairn::srpc::rdma
