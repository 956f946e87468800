// Buf: a counted slice of arena memory. The payload of a request lands in one once and stays there until the reply is
// sent: it is sliced and passed on by reference, never copied (copy.h counts the exceptions).
//
// Counts are not atomic: a Buf and its copies belong to one thread at a time. A block whose last Buf dies on another
// thread than its pool's goes home by the pool's ForeignFree hook.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/assert.h"

namespace cairn::mem {

class Pool;

// The bookkeeping of one block; stands apart from the payload, which therefore keeps its alignment.
struct Block {
  std::byte* data = nullptr;
  Pool* pool = nullptr;
  uint32_t size = 0;
  uint32_t refs = 0;
  Block* next = nullptr;  // while free or on its way home
};

class Buf {
 public:
  Buf() = default;
  // Takes over one reference that the caller holds.
  Buf(Block* block, uint32_t offset, uint32_t size) : block_(block), offset_(offset), size_(size) {}
  Buf(const Buf& other) : block_(other.block_), offset_(other.offset_), size_(other.size_) {
    if (block_ != nullptr) ++block_->refs;
  }
  Buf(Buf&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        offset_(std::exchange(other.offset_, 0)),
        size_(std::exchange(other.size_, 0)) {}
  Buf& operator=(Buf other) noexcept {
    std::swap(block_, other.block_);
    std::swap(offset_, other.offset_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buf() {
    if (block_ != nullptr && --block_->refs == 0) release(block_);
  }

  // A Buf without a block is empty and false.
  explicit operator bool() const { return block_ != nullptr; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const std::byte* data() const { return block_ == nullptr ? nullptr : block_->data + offset_; }
  // For whoever fills it. Writing to a block that others read is a bug of the writer; only its first holder writes.
  std::byte* writable() { return block_ == nullptr ? nullptr : block_->data + offset_; }
  std::span<const std::byte> bytes() const { return {data(), size_}; }
  std::span<std::byte> writable_bytes() { return {writable(), size_}; }

  // Shares the block.
  Buf slice(size_t offset, size_t size) const& {
    ASSERT(offset <= size_ && size <= size_ - offset);
    Buf part(*this);
    part.offset_ += static_cast<uint32_t>(offset);
    part.size_ = static_cast<uint32_t>(size);
    return part;
  }
  void trim_front(size_t n) {
    ASSERT(n <= size_);
    offset_ += static_cast<uint32_t>(n);
    size_ -= static_cast<uint32_t>(n);
  }
  void truncate(size_t size) {
    ASSERT(size <= size_);
    size_ = static_cast<uint32_t>(size);
  }
  // No other Buf shares the block.
  bool unique() const { return block_ != nullptr && block_->refs == 1; }
  // Bytes of the block behind this slice's end, which its only holder may still fill.
  size_t tailroom() const { return block_ == nullptr ? 0 : block_->size - offset_ - size_; }
  void extend(size_t n) {
    ASSERT(n <= tailroom());
    size_ += static_cast<uint32_t>(n);
  }
  const Block* block() const { return block_; }

 private:
  static void release(Block* block) noexcept;

  Block* block_ = nullptr;
  uint32_t offset_ = 0;
  uint32_t size_ = 0;
};

}  // namespace cairn::mem
