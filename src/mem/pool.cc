#include "mem/pool.h"

#include <algorithm>

namespace cairn::mem {
namespace {

Error too_large() {
  return Error(Errc::too_large, "more memory than the arena can ever give at once (raise memory.arena)");
}

}  // namespace

void Buf::release(Block* block) noexcept {
  Pool& pool = *block->pool;
  if (pool.foreign_free_ != nullptr && !pool.owner_.is_current()) {
    pool.foreign_free_->send_home(block);
  } else {
    pool.free_block(block);
  }
}

Pool::Pool(Loop& loop, Registry& registry, std::span<std::byte> memory, size_t reserve_bytes, size_t request_bytes)
    : loop_(loop),
      memory_(memory),
      reserve_bytes_(reserve_bytes),
      request_bytes_(request_bytes),
      free_bytes_(memory.size()),
      owner_(ThreadId::current()),
      blocks_(new Block[memory.size() / kPage]),
      free_class_(memory.size() / kPage, kNotFree),
      free_slot_(memory.size() / kPage, 0),
      turns_{Semaphore(loop, 1), Semaphore(loop, 1), Semaphore(loop, 1)},
      freed_(loop),
      copied_(registry.counter("mem_payload_bytes_copied_total", "Payload bytes copied in memory by our own code")),
      free_gauge_(registry.gauge("mem_pool_free_bytes", "Arena bytes not in use")),
      waits_(registry.counter("mem_pool_waits_total", "Allocations that had to wait for memory")) {
  ASSERT(memory.size() % kMaxBlock == 0 && !memory.empty());
  ASSERT(reserve_bytes + request_bytes < memory.size());
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
  if (has_waiters()) freed_.set();
}

bool Pool::has_waiters() const {
  return std::ranges::any_of(turns_, [](const Semaphore& turn) { return turn.available() == 0; });
}

size_t Pool::kept_from(Purpose purpose) const {
  switch (purpose) {
    case Purpose::client:
      return reserve_bytes_ + request_bytes_;
    case Purpose::request:
      return reserve_bytes_;
    case Purpose::internal:
      break;
  }
  return 0;
}

// What must be free for `size` bytes.
size_t Pool::needed(size_t size, Shape shape) {
  if (shape == Shape::one_block) return kClassBytes[class_of(size)];
  return (size + kPage - 1) / kPage * kPage;
}

bool Pool::can_ever_give(size_t size, Purpose purpose, Shape shape) const {
  return size <= memory_.size() && needed(size, shape) <= memory_.size() - kept_from(purpose);
}

bool Pool::try_take(size_t size, Purpose purpose, Shape shape, BufChain& out) {
  const size_t keep = kept_from(purpose);
  if (free_bytes_ < needed(size, shape) + keep) return false;
  while (size > 0) {
    size_t class_index = class_of(std::min(size, kMaxBlock));
    Block* block = free_bytes_ - keep >= kClassBytes[class_index] ? take(class_index) : nullptr;
    if (block == nullptr && shape == Shape::one_block) return false;
    // There is room, but in smaller pieces, or not for a last block that would be half empty. Going down ends well:
    // whole pages were counted above, and every block but the last is full.
    while (block == nullptr) {
      ASSERT(class_index > 0);
      --class_index;
      if (free_bytes_ - keep >= kClassBytes[class_index]) block = take(class_index);
    }
    const size_t n = std::min<size_t>(size, block->size);
    out.append(Buf(block, 0, static_cast<uint32_t>(n)));
    size -= n;
  }
  return true;
}

// Caches give way, one by one and a little each time, until there is room.
bool Pool::try_take_reclaiming(size_t size, Purpose purpose, Shape shape, BufChain& out) {
  if (try_take(size, purpose, shape, out)) return true;
  for (size_t i = 0; i < reclaimers_.size(); ++i) {
    while (reclaimers_[i]->reclaim(size)) {
      if (try_take(size, purpose, shape, out)) return true;
    }
  }
  return false;
}

Task<Result<void>> Pool::wait_and_take(size_t size, Purpose purpose, Shape shape, CancelToken token, BufChain& out) {
  waits_.add();
  CO_TRY(co_await turn(purpose).take(1, token));
  while (!try_take_reclaiming(size, purpose, shape, out)) {
    freed_.reset();
    auto waited = co_await freed_.wait(token);
    if (!waited) {
      turn(purpose).give();
      co_return std::move(waited).error();
    }
  }
  turn(purpose).give();
  co_return Result<void>();
}

Result<Buf> Pool::try_alloc(size_t size, Purpose purpose) {
  ASSERT(size > 0 && size <= kMaxBlock);
  BufChain chain;
  // Those who wait go first.
  if (turn(purpose).available() == 0 || !try_take_reclaiming(size, purpose, Shape::one_block, chain)) {
    return Errc::busy;
  }
  return chain.slices().front();
}

Task<Result<Buf>> Pool::alloc(size_t size, Purpose purpose, CancelToken token) {
  if (auto now = try_alloc(size, purpose)) co_return now;
  if (!can_ever_give(size, purpose, Shape::one_block)) co_return too_large();
  BufChain chain;
  CO_TRY(co_await wait_and_take(size, purpose, Shape::one_block, token, chain));
  co_return chain.slices().front();
}

Task<Result<BufChain>> Pool::alloc_chain(size_t size, Purpose purpose, CancelToken token) {
  BufChain chain;
  if (size == 0) co_return chain;
  if (!can_ever_give(size, purpose, Shape::any_blocks)) co_return too_large();
  if (turn(purpose).available() > 0 && try_take_reclaiming(size, purpose, Shape::any_blocks, chain)) co_return chain;
  CO_TRY(co_await wait_and_take(size, purpose, Shape::any_blocks, token, chain));
  co_return chain;
}

}  // namespace cairn::mem
