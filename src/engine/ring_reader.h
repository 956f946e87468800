// Reads the journal ring at opening: page after page, a MiB at a time.
#pragma once

#include <bitset>
#include <optional>
#include <span>

#include "base/status.h"
#include "engine/block_device.h"
#include "engine/geometry.h"
#include "mem/pool.h"
#include "reactor/task.h"

namespace cairn::engine {

class RingReader {
 public:
  RingReader(BlockDevice& device, mem::Pool& pool, const ShardLayout& layout)
      : device_(device), pool_(pool), layout_(layout) {}

  // Makes the page at `lsn` (a multiple of 4 KiB) available to page(). A page that the device can't read is no error
  // here. Errors: the pool's.
  Task<Result<void>> load(Lsn lsn);
  bool has(Lsn lsn) const { return window_ && window_start(lsn) == start_; }
  // Empty when the device couldn't read it.
  std::span<const std::byte> page(Lsn lsn) const;

 private:
  static constexpr uint32_t kWindowBytes = mem::kMaxBlock;
  static constexpr uint32_t kWindowPages = kWindowBytes / kPageBytes;
  // Journals are whole MiB (ShardLayout::of), so windows don't wrap.
  uint64_t window_start(Lsn lsn) const { return lsn.value % layout_.journal_bytes / kWindowBytes * kWindowBytes; }

  BlockDevice& device_;
  mem::Pool& pool_;
  const ShardLayout& layout_;
  mem::Buf window_;
  uint64_t start_ = 0;
  std::bitset<kWindowPages> unreadable_;
};

}  // namespace cairn::engine
