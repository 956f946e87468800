#include "srpc/stream/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "mem/copy.h"

namespace cairn::srpc::stream {
namespace {

constexpr size_t kFirstStage = 8192;
// A batch tells how much may be read ahead, not how much must be: more than this in one piece gains nothing.
constexpr size_t kMaxReadAhead = 16384;

}  // namespace

Reader::Reader(Counter& copied) : copied_(copied) {}

Reader::Step Reader::next(Incoming& out) {
  if (phase_ == Phase::given) consume();
  if (phase_ == Phase::header && staged() >= kHeaderBytes) decode();
  if (phase_ == Phase::prefix && staged() >= header_.prefix_bytes()) check_prefix();
  switch (phase_) {
    case Phase::header:
    case Phase::prefix:
    case Phase::data:
      return Step::need_bytes;
    case Phase::memory:
      return Step::need_memory;
    case Phase::done:
      emit(out);
      return header_.elsewhere && !skipping_ ? Step::elsewhere : Step::message;
    case Phase::given:
    case Phase::failed:
      break;
  }
  return Step::failed;
}

void Reader::decode() {
  auto header =
      decode_header(std::span<const std::byte, kHeaderBytes>(stage_.data() + begin_, kHeaderBytes), highest_version_);
  if (!header) {
    const Errc code = header.error().code();
    const CloseReason reason = code == Errc::unsupported ? CloseReason::bad_version
                               : code == Errc::too_large ? CloseReason::too_large
                                                         : CloseReason::bad_header;
    return fail(reason, header.error().message());
  }
  header_ = *header;
  if (header_.data_bytes > max_data_) {
    return fail(CloseReason::too_large,
                fmt::format("a message with {} bytes of data where {} are allowed", header_.data_bytes, max_data_));
  }
  if ((header_.elsewhere && may_be_elsewhere_ != header_.kind) ||
      (header_.names_memory && may_be_elsewhere_ != Kind::request)) {
    return fail(CloseReason::bad_sequence, "data elsewhere, which this connection doesn't have");
  }
  phase_ = Phase::prefix;
  after_ = std::min<size_t>(header_.batch, kMaxReadAhead) + (kWindow << header_.window_shift);
  window_ = header_.is_bulk() ? header_.prefix_bytes() : std::max(window_, header_.message_bytes() + after_);
}

void Reader::check_prefix() {
  if (header_.metadata_bytes > 0) {
    Le32 crc;
    // cairn-allow(memcpy): framing or metadata, never payload
    std::memcpy(&crc, stage(kHeaderBytes + header_.metadata_bytes, sizeof crc).data(), sizeof crc);
    if (crc != crc32c(stage(kHeaderBytes, header_.metadata_bytes))) {
      return fail(CloseReason::bad_header, "the metadata's checksum is wrong");
    }
  }
  if (!read_memory_block()) return fail(CloseReason::bad_header, "the memory that a request names makes no sense");
  phase_ = header_.data_bytes == 0 ? Phase::done : Phase::memory;
}

bool Reader::read_memory_block() {
  pieces_.clear();
  data_pieces_ = memory_block_ = 0;
  if (!header_.names_memory) return !header_.elsewhere || header_.kind == Kind::reply;
  MemoryCounts counts;
  if (header_.metadata_bytes < sizeof counts) return false;
  const size_t end = kHeaderBytes + header_.metadata_bytes;
  // cairn-allow(memcpy): framing or metadata, never payload
  std::memcpy(&counts, stage(end - sizeof counts, sizeof counts).data(), sizeof counts);
  const size_t count = size_t{counts.data} + counts.reply;
  memory_block_ = count * sizeof(RemotePiece) + sizeof counts;
  if (count > kMaxPieces || memory_block_ > header_.metadata_bytes ||
      header_.metadata_bytes - memory_block_ > kMaxMetadata) {
    return false;
  }
  pieces_.resize(count);
  // Copying nothing to nowhere is undefined, too.
  if (count > 0) {
    // cairn-allow(memcpy): framing or metadata, never payload
    std::memcpy(pieces_.data(), stage(end - memory_block_, memory_block_).data(), count * sizeof(RemotePiece));
  }
  data_pieces_ = counts.data;
  uint64_t data_bytes = 0;
  for (const RemotePiece& piece : data_pieces()) data_bytes += piece.bytes;
  uint64_t reply_bytes = 0;
  for (const RemotePiece& piece : reply_pieces()) reply_bytes += piece.bytes;
  const bool empty_piece = std::ranges::any_of(pieces_, [](const RemotePiece& piece) { return piece.bytes == 0; });
  return !empty_piece && data_bytes == (header_.elsewhere ? header_.data_bytes : 0) && reply_bytes <= kMaxData;
}

void Reader::give_memory(mem::BufChain&& memory) {
  ASSERT(phase_ == Phase::memory && memory.size() == header_.data_bytes);
  data_ = std::move(memory);
  if (header_.elsewhere) {
    phase_ = Phase::done;
    return;
  }
  phase_ = Phase::data;
  copy_from_stage();
  if (received_ == header_.data_bytes) end_payload();
}

void Reader::skip_payload() {
  ASSERT(phase_ == Phase::memory);
  skipping_ = true;
  phase_ = Phase::done;
  if (header_.elsewhere) return;
  from_stage_ = std::min<size_t>(staged() - header_.prefix_bytes(), header_.data_bytes);
  received_ = from_stage_;
  if (received_ == header_.data_bytes) return;
  nothing_.resize(kMaxReadAhead);
  phase_ = Phase::data;
}

void Reader::copy_from_stage() {
  const size_t prefix = header_.prefix_bytes();
  from_stage_ = std::min<size_t>(staged() - prefix, header_.data_bytes);
  size_t at = 0;
  while (at < from_stage_) {
    iovec piece;
    ASSERT(data_.to_iovecs({&piece, 1}, at) == 1);
    const size_t n = std::min(piece.iov_len, from_stage_ - at);
    mem::copy_payload(copied_, {static_cast<std::byte*>(piece.iov_base), n}, stage(prefix + at, n));
    at += n;
  }
  check_payload(0, from_stage_);
  received_ = from_stage_;
}

// Checks pages as they become complete: a large payload is then still in the cache, and the sender isn't done yet.
void Reader::check_payload(size_t from, size_t size) {
  size_t skip = from;
  for (const mem::Buf& buf : data_.slices()) {
    if (size == 0) return;
    if (skip >= buf.size()) {
      skip -= buf.size();
      continue;
    }
    const size_t n = std::min(size, buf.size() - skip);
    checksums_.feed(buf.bytes().subspan(skip, n), [this](size_t index, uint32_t crc) { check_page(index, crc); });
    skip = 0;
    size -= n;
  }
}

void Reader::check_page(size_t index, uint32_t crc) {
  Le32 wanted;
  // cairn-allow(memcpy): framing or metadata, never payload
  std::memcpy(&wanted, stage(table_offset() + 4 * index, sizeof wanted).data(), sizeof wanted);
  if (wanted != crc) damaged_ = true;
}

void Reader::end_payload() {
  checksums_.finish([this](size_t index, uint32_t crc) { check_page(index, crc); });
  phase_ = Phase::done;
}

void Reader::emit(Incoming& out) {
  out.header = header_;
  out.metadata = stage(kHeaderBytes, header_.metadata_bytes - memory_block_);
  out.damaged = damaged_;
  out.data = damaged_ ? mem::BufChain() : std::move(data_);
  out.no_memory = skipping_;
  out.arrived = began_;
  data_.clear();
  phase_ = Phase::given;
}

void Reader::consume() {
  const size_t used = header_.prefix_bytes() + from_stage_;
  ASSERT(used <= staged());
  begin_ += used;
  window_ = std::max(window_ > used ? window_ - used : 0, after_);
  if (header_.is_bulk()) window_ = after_;
  if (begin_ == end_) begin_ = end_ = 0;
  received_ = 0;
  from_stage_ = 0;
  damaged_ = false;
  skipping_ = false;
  checksums_.reset();
  began_ = last_advance_;
  phase_ = Phase::header;
}

void Reader::reserve_stage(size_t bytes) {
  if (begin_ + bytes <= stage_.size()) return;
  if (begin_ > 0) {
    // cairn-allow(memcpy): framing that was received ahead
    std::memmove(stage_.data(), stage_.data() + begin_, staged());
    end_ -= begin_;
    begin_ = 0;
  }
  if (bytes > stage_.size()) stage_.resize(std::max(bytes, kFirstStage));
}

size_t Reader::plan(std::span<iovec> out) {
  ASSERT(out.size() >= 2);
  if (phase_ == Phase::given) consume();
  ASSERT(phase_ == Phase::header || phase_ == Phase::prefix || phase_ == Phase::data);
  if (skipping_) {
    out[0] = {nothing_.data(), std::min<size_t>(nothing_.size(), header_.data_bytes - received_)};
    return 1;
  }
  size_t n = 0;
  size_t want = 0;  // of the stage, from begin_
  if (phase_ == Phase::data) {
    n = data_.to_iovecs(out.first(out.size() - 1), received_);
    // The stage only behind the whole rest of the payload.
    size_t planned = received_;
    for (const iovec& piece : out.first(n)) planned += piece.iov_len;
    if (planned < header_.data_bytes) return n;
    want = staged() + after_;
  } else {
    // Never less than what this message itself needs.
    const size_t needed = phase_ == Phase::header ? kHeaderBytes : header_.prefix_bytes();
    want = std::max(needed, std::min(window_, staged() + kMaxReadAhead));
  }
  reserve_stage(want);
  ASSERT(want > staged());
  out[n++] = {stage_.data() + end_, want - staged()};
  return n;
}

void Reader::advance(size_t n, Time now) {
  last_advance_ = now;
  if (at_boundary()) began_ = now;
  if (phase_ == Phase::data) {
    const size_t payload = std::min<size_t>(n, header_.data_bytes - received_);
    if (!skipping_) check_payload(received_, payload);
    received_ += payload;
    n -= payload;
    if (received_ == header_.data_bytes) end_payload();
  }
  end_ += n;
  ASSERT(end_ <= stage_.size());
}

void Reader::fail(CloseReason reason, std::string text) {
  phase_ = Phase::failed;
  failure_ = {reason, std::move(text)};
}

}  // namespace cairn::srpc::stream
