#include "engine/ring_reader.h"

namespace cairn::engine {

Task<Result<void>> RingReader::load(Lsn lsn) {
  if (has(lsn)) co_return Result<void>{};
  if (!window_) {
    CO_TRY(window_, co_await pool_.alloc(kWindowBytes, mem::Purpose::internal));
  }
  start_ = window_start(lsn);
  unreadable_.reset();
  const uint64_t at = layout_.journal_offset + start_;
  if (co_await read(device_, at, window_)) co_return Result<void>{};
  // Some of it can't be read: find out what.
  for (uint32_t i = 0; i < kWindowPages; ++i) {
    const uint64_t offset = uint64_t{i} * kPageBytes;
    auto page_read = co_await read_patiently(device_, at + offset, window_.slice(offset, kPageBytes));
    unreadable_[i] = !page_read;
  }
  co_return Result<void>{};
}

std::span<const std::byte> RingReader::page(Lsn lsn) const {
  ASSERT(has(lsn) && lsn.value % kPageBytes == 0);
  const uint64_t offset = lsn.value % layout_.journal_bytes - start_;
  if (unreadable_[offset / kPageBytes]) return {};
  return window_.bytes().subspan(offset, kPageBytes);
}

}  // namespace cairn::engine
