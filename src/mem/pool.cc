#include "mem/pool.h"

#include <algorithm>

namespace cairn::mem {

void Buf::release(Block* block) noexcept {
  Pool& pool = *block->pool;
  if (pool.foreign_free_ != nullptr && !pthread_equal(pool.owner_, pthread_self())) {
    pool.foreign_free_->send_home(block);
  } else {
    pool.free_block(block);
  }
}

Pool::Pool(Loop& loop, Registry& registry, std::span<std::byte> memory, size_t reserve_bytes)
    : loop_(loop),
      memory_(memory),
      reserve_bytes_(reserve_bytes),
      free_bytes_(memory.size()),
      owner_(pthread_self()),
      blocks_(new Block[memory.size() / kPage]),
      free_class_(memory.size() / kPage, kNotFree),
      free_slot_(memory.size() / kPage, 0),
      client_turn_(loop, 1),
      internal_turn_(loop, 1),
      freed_(loop),
      copied_(registry.counter("mem_payload_bytes_copied_total", "Payload bytes copied in memory by our own code")),
      free_gauge_(registry.gauge("mem_pool_free_bytes", "Arena bytes not in use")),
      waits_(registry.counter("mem_pool_waits_total", "Allocations that had to wait for memory")) {
  ASSERT(memory.size() % kMaxBlock == 0 && !memory.empty());
  ASSERT(reserve_bytes < memory.size());
  // Highest first, so that the lowest addresses are given out first.
  for (size_t page = memory.size() / kPage; page > 0;) {
    page -= kMaxBlock / kPage;
    push_free(kClassBytes.size() - 1, page);
  }
  free_gauge_.set(static_cast<int64_t>(free_bytes_));
}

Pool::~Pool() { ASSERT(free_bytes_ == memory_.size()); }

size_t Pool::class_of(size_t size) {
  ASSERT(size > 0 && size <= kMaxBlock);
  size_t index = 0;
  while (kClassBytes[index] < size) ++index;
  return index;
}

bool Pool::has_room(size_t bytes, Purpose purpose) const {
  const size_t keep = purpose == Purpose::client ? reserve_bytes_ : 0;
  return free_bytes_ >= bytes + keep;
}

void Pool::push_free(size_t class_index, size_t page) {
  free_class_[page] = static_cast<uint8_t>(class_index);
  free_slot_[page] = static_cast<uint32_t>(free_[class_index].size());
  free_[class_index].push_back(static_cast<uint32_t>(page));
}

void Pool::remove_free(size_t class_index, size_t page) {
  auto& list = free_[class_index];
  const uint32_t slot = free_slot_[page];
  ASSERT(list[slot] == page);
  list[slot] = list.back();
  free_slot_[list[slot]] = slot;
  list.pop_back();
  free_class_[page] = kNotFree;
}

Block* Pool::take(size_t class_index) {
  size_t from = class_index;
  while (from < kClassBytes.size() && free_[from].empty()) ++from;
  if (from == kClassBytes.size()) return nullptr;
  const size_t page = free_[from].back();
  remove_free(from, page);
  for (; from > class_index; --from) {
    const size_t part = kClassBytes[from - 1] / kPage;
    for (size_t i = 3; i > 0; --i) push_free(from - 1, page + i * part);
  }
  Block& block = blocks_[page];
  block = {memory_.data() + page * kPage, this, kClassBytes[class_index], 1, nullptr};
  free_bytes_ -= block.size;
  free_gauge_.set(static_cast<int64_t>(free_bytes_));
  return &block;
}

void Pool::free_block(Block* block) noexcept {
  size_t page = page_of(block);
  size_t class_index = class_of(block->size);
  ASSERT(block->refs == 0 && free_class_[page] == kNotFree);
  free_bytes_ += block->size;
  free_gauge_.set(static_cast<int64_t>(free_bytes_));
  // Merge while all four siblings are free in this class.
  while (class_index + 1 < kClassBytes.size()) {
    const size_t part = kClassBytes[class_index] / kPage;
    const size_t first = page / (4 * part) * (4 * part);
    bool all_free = true;
    for (size_t i = 0; i < 4; ++i) {
      const size_t sibling = first + i * part;
      all_free = all_free && (sibling == page || free_class_[sibling] == class_index);
    }
    if (!all_free) break;
    for (size_t i = 0; i < 4; ++i) {
      if (first + i * part != page) remove_free(class_index, first + i * part);
    }
    page = first;
    ++class_index;
  }
  push_free(class_index, page);
  if (client_turn_.available() == 0 || internal_turn_.available() == 0) freed_.set();
}

Result<Buf> Pool::try_alloc(size_t size, Purpose purpose) {
  const size_t class_index = class_of(size);
  if (turn(purpose).available() == 0) return Errc::busy;  // those who wait go first
  if (has_room(kClassBytes[class_index], purpose)) {
    if (Block* block = take(class_index); block != nullptr) return Buf(block, 0, static_cast<uint32_t>(size));
  }
  BufChain chain;
  if (!try_chain_reclaiming(size, purpose, chain)) return Errc::busy;
  return chain.slices().front();
}

bool Pool::try_chain(size_t size, Purpose purpose, BufChain& out) {
  size_t needed = size / kMaxBlock * kMaxBlock;
  if (size % kMaxBlock != 0) needed += kClassBytes[class_of(size % kMaxBlock)];
  if (!has_room(needed, purpose)) return false;
  while (size > 0) {
    const size_t n = std::min(size, kMaxBlock);
    Block* block = take(class_of(n));
    if (block == nullptr) {  // room, but in pieces
      out.clear();
      return false;
    }
    out.append(Buf(block, 0, static_cast<uint32_t>(n)));
    size -= n;
  }
  return true;
}

// Caches give way, one by one and a little each time, until there is room in one piece.
bool Pool::try_chain_reclaiming(size_t size, Purpose purpose, BufChain& out) {
  if (try_chain(size, purpose, out)) return true;
  for (size_t i = 0; i < reclaimers_.size(); ++i) {
    while (reclaimers_[i]->reclaim(size)) {
      if (try_chain(size, purpose, out)) return true;
    }
  }
  return false;
}

Task<Result<BufChain>> Pool::alloc_chain(size_t size, Purpose purpose, CancelToken token) {
  BufChain chain;
  if (size == 0) co_return chain;
  const size_t keep = purpose == Purpose::client ? reserve_bytes_ : 0;
  if (size > memory_.size() - keep) co_return Error(Errc::too_large, "allocation is larger than the memory arena");
  if (turn(purpose).available() > 0 && try_chain_reclaiming(size, purpose, chain)) co_return chain;

  waits_.add();
  CO_TRY(co_await turn(purpose).take(1, token));
  while (!try_chain_reclaiming(size, purpose, chain)) {
    freed_.reset();
    auto waited = co_await freed_.wait(token);
    if (!waited) {
      turn(purpose).give();
      co_return std::move(waited).error();
    }
  }
  turn(purpose).give();
  co_return chain;
}

Task<Result<Buf>> Pool::alloc(size_t size, Purpose purpose, CancelToken token) {
  ASSERT(size > 0 && size <= kMaxBlock);
  CO_TRY(auto chain, co_await alloc_chain(size, purpose, token));
  co_return chain.slices().front();
}

}  // namespace cairn::mem
