#include "engine/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "base/log.h"
#include "engine/device_group.h"
#include "engine/journal.h"

namespace cairn::engine {
namespace {

// A page can be replaced again while it is looked up again; a page that is so often will be read from memory soon.
constexpr int kMaxTries = 16;

}  // namespace

class Reader::Ticket {
 public:
  explicit Ticket(Reader& reader) : reader_(reader), ticket_(reader.state_.space.enter_read()) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    reader_.state_.space.leave_read(ticket_);
    reader_.listener_.on_read_done();
  }

 private:
  Reader& reader_;
  uint64_t ticket_;
};

class Reader::UnderWay {
 public:
  explicit UnderWay(Reader& reader) : reader_(reader) { ++reader_.under_way_; }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() {
    if (--reader_.under_way_ == 0) reader_.idle_.set();
  }

 private:
  Reader& reader_;
};

Task<Result<void>> Reader::start() {
  CO_TRY(zeroes_, co_await state_.context.pool.alloc(kUnitBytes, mem::Purpose::internal));
  std::memset(zeroes_.writable(), 0, zeroes_.size());
  co_return Result<void>{};
}

Task<void> Reader::stop() {
  ASSERT(refusing_);
  while (under_way_ > 0) {
    idle_.reset();
    (void)co_await idle_.wait();
  }
  zeroes_ = {};
}

Task<Result<mem::BufChain>> Reader::read(ChunkId id, uint32_t offset, uint32_t length, CancelToken token,
                                         mem::Purpose purpose) {
  if (refusing_) co_return Error(Errc::closed, "the shard is closing");
  const UnderWay under_way(*this);
  for (int tries = 0; tries < kMaxTries; ++tries) {
    if (state_.damage) co_return *state_.damage;
    if (token.cancelled()) co_return Error(token.reason());
    const auto found = state_.chunks.find(id);
    if (found == state_.chunks.end()) co_return Error(Errc::not_found, "no such chunk");
    const Chunk& chunk = found->second;
    if (offset >= chunk.size) co_return mem::BufChain();
    const uint32_t size = std::min(length, chunk.size - offset);
    if (size == 0) co_return mem::BufChain();
    const uint32_t first = offset / kPageBytes;
    const uint32_t pages = pages_of(uint64_t{offset} + size) - first;

    const Ticket ticket(*this);
    auto plan = plan_read(state_, chunk, first, pages);
    if (!plan) co_return std::move(plan).error().with_context(fmt::format("chunk {}", id.to_string()));
    mem::BufChain memory;
    if (plan->device_bytes > 0) {
      CO_TRY(memory, co_await state_.context.pool.alloc_chain(plan->device_bytes, purpose, token));
      CO_TRY(const Verdict verdict, co_await fetch(id, *plan, memory));
      if (verdict == Verdict::changed) continue;
      if (verdict == Verdict::rotten) {
        co_return Error(Errc::corrupt, fmt::format("chunk {}: bytes on the device do not match their checksum, see the "
                                                   "log for where",
                                                   id.to_string()));
      }
      keep(id, *plan, memory);
    }
    mem::BufChain all = assemble(*plan, std::move(memory));
    co_return all.slice(offset % kPageBytes, size);
  }
  co_return Error(Errc::busy, "the chunk was overwritten again and again while it was read");
}

Task<Result<Reader::Verdict>> Reader::fetch(ChunkId id, const ReadPlan& plan, mem::BufChain memory) {
  DeviceGroup group(state_.context.device, plan.pieces.size());
  mem::BufChain rest = memory;
  for (const ReadPiece& piece : plan.pieces) {
    if (piece.source != ReadPiece::Source::device && piece.source != ReadPiece::Source::journal) continue;
    const uint64_t at = piece.source == ReadPiece::Source::device ? state_.layout.page_offset(piece.home)
                                                                  : Journal::device_offset(state_.layout, piece.lsn);
    group.add(IoRequest::Op::read, at, rest.split_front(size_t{piece.pages} * kPageBytes));
  }
  state_.metrics.read_bytes.add(plan.device_bytes);
  const Errc result = co_await group;
  if (result != Errc::ok) co_return Error(result, fmt::format("chunk {}: the device failed a read", id.to_string()));
  co_return check(id, plan, memory);
}

Reader::Verdict Reader::check(ChunkId id, const ReadPlan& plan, const mem::BufChain& memory) {
  // All pages of all device and journal pieces, in the order of their CRCs.
  Verdict verdict = Verdict::good;
  auto piece = plan.pieces.begin();
  uint32_t page = 0;
  memory.for_each([&](std::span<const std::byte> slice) {
    for (; !slice.empty(); slice = slice.subspan(kPageBytes), ++page) {
      if (crc32c(slice.first(kPageBytes)) == plan.crcs[page]) continue;
      while (piece->source == ReadPiece::Source::zero || piece->source == ReadPiece::Source::memory ||
             page >= piece->crc_at + piece->pages) {
        ++piece;
      }
      const auto found = state_.chunks.find(id);
      if (found == state_.chunks.end() || !is_current(state_, found->second, plan, *piece, page - piece->crc_at)) {
        if (verdict == Verdict::good) verdict = Verdict::changed;
        continue;
      }
      state_.metrics.corrupt_pages.add();
      // Once per read: what is rotten beyond the first page is in the metric.
      if (verdict != Verdict::rotten) report(id, *piece, page - piece->crc_at);
      verdict = Verdict::rotten;
    }
  });
  return verdict;
}

void Reader::report(ChunkId id, const ReadPiece& piece, uint32_t index) const {
  const uint64_t offset = piece.source == ReadPiece::Source::device ? state_.layout.page_offset(piece.home + index)
                                                                    : Journal::device_offset(state_.layout, piece.lsn);
  LOG(error, "shard {}: chunk {}, page {}: the bytes at offset {} of the device do not match their checksum",
      state_.extent.shard, id.to_string(), piece.first_page + index, offset);
}

// What was read and is still what the map says goes to the cache.
void Reader::keep(ChunkId id, const ReadPlan& plan, const mem::BufChain& memory) {
  const auto found = state_.chunks.find(id);
  if (found == state_.chunks.end() || refusing_ || state_.context.pool.has_waiters()) return;
  size_t at = 0;
  for (const ReadPiece& piece : plan.pieces) {
    if (piece.source != ReadPiece::Source::device && piece.source != ReadPiece::Source::journal) continue;
    const size_t size = size_t{piece.pages} * kPageBytes;
    if (piece.source == ReadPiece::Source::device) keep_piece(found->second, plan, piece, memory.slice(at, size));
    at += size;
  }
}

void Reader::keep_piece(const Chunk& chunk, const ReadPlan& plan, const ReadPiece& piece, const mem::BufChain& memory) {
  const uint32_t chunk_pages = pages_of(chunk.size);
  for (uint32_t i = 0; i < piece.pages;) {
    const uint32_t page = piece.first_page + i;
    const uint32_t of_unit = page % kPagesPerUnit;
    const uint32_t in_piece = std::min(kPagesPerUnit - of_unit, piece.pages - i);
    const uint32_t in_unit = std::min(kPagesPerUnit, chunk_pages - page / kPagesPerUnit * kPagesPerUnit);
    bool current = true;
    for (uint32_t k = 0; k < in_piece && current; ++k) current = is_current(state_, chunk, plan, piece, i + k);
    if (current) {
      const mem::BufChain unit = memory.slice(size_t{i} * kPageBytes, size_t{in_piece} * kPageBytes);
      if (of_unit == 0 && in_piece == in_unit && unit.slices().size() == 1) {
        const HomePage home = piece.home + i;
        state_.cache.insert_unit(Unit(static_cast<uint32_t>(home.value / kPagesPerUnit)), unit.slices().front());
      } else {
        for (uint32_t k = 0; k < in_piece; ++k) {
          state_.cache.insert_page(piece.home + (i + k),
                                   unit.slice(size_t{k} * kPageBytes, kPageBytes).slices().front());
        }
      }
    }
    i += in_piece;
  }
}

mem::BufChain Reader::assemble(const ReadPlan& plan, mem::BufChain memory) const {
  mem::BufChain all;
  for (const ReadPiece& piece : plan.pieces) {
    size_t size = size_t{piece.pages} * kPageBytes;
    switch (piece.source) {
      case ReadPiece::Source::memory:
        all.append(piece.memory);
        break;
      case ReadPiece::Source::device:
      case ReadPiece::Source::journal:
        all.append(memory.split_front(size));
        break;
      case ReadPiece::Source::zero:
        ASSERT(!zeroes_.empty());
        for (; size > 0; size -= std::min(size, zeroes_.size()))
          all.append(zeroes_.slice(0, std::min(size, zeroes_.size())));
        break;
    }
  }
  return all;
}

}  // namespace cairn::engine
