#include "srpc/stream/output.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/crc32c.h"
#include "mem/copy.h"
#include "srpc/stream/checksums.h"

namespace cairn::srpc::stream {
namespace {

// Payload up to this goes into the buffer: copying it costs less than another piece in the system call.
constexpr size_t kCopyUpTo = 1024;
// After this many messages without bulk the next bulk one is promised to be padded, so that the receiver may read
// ahead. One padded message (4 KiB of zeroes) per that many others costs nothing that can be measured.
constexpr uint32_t kCalmAfter = 64;
// Sent bytes at the front of the buffer that are worth moving the rest for.
constexpr size_t kCompactAt = 256 * 1024;

// One entry for each page, from the start of `table`.
void write_checksums(const mem::BufChain& data, std::span<std::byte> table) {
  PageChecksums checksums;
  const auto entry = [&](size_t index, uint32_t value) {
    const Le32 crc = value;
    // cairn-allow(memcpy): framing or metadata, never payload
    std::memcpy(table.data() + index * sizeof crc, &crc, sizeof crc);
  };
  data.for_each([&](std::span<const std::byte> piece) { checksums.feed(piece, entry); });
  checksums.finish(entry);
}

}  // namespace

void Output::add(Header header, std::span<const std::byte> metadata, std::span<const std::byte> memory_block,
                 mem::BufChain&& data) {
  ASSERT(data.size() <= kMaxData && (!header.unchecked || header.elsewhere));
  ASSERT(metadata.size() <= kMaxMetadata);
  header.metadata_bytes = static_cast<uint16_t>(metadata.size() + memory_block.size());
  header.data_bytes = static_cast<uint32_t>(data.size());
  header.batch = 0;
  const bool bulk = header.is_bulk();
  if (bulk) {
    header.pad_shift = promised_shift_;
    promised_shift_ = 0;
    calm_messages_ = 0;
  } else if (++calm_messages_ == kCalmAfter) {
    promised_shift_ = kMaxWindowShift;
  }
  header.window_shift = promised_shift_;

  const bool inline_data = header.stream_bytes() <= kCopyUpTo;
  const size_t prefix = header.prefix_bytes();
  const size_t bytes = prefix + (inline_data ? header.stream_bytes() : 0);
  const size_t at = buffer_.size();
  buffer_.resize(at + bytes);  // zeroes: the padding
  const std::span<std::byte> out(buffer_.data() + at, bytes);
  encode_header(header, out);
  size_t filled = kHeaderBytes;
  for (const auto part : {metadata, memory_block}) {
    // cairn-allow(memcpy): framing or metadata, never payload
    if (!part.empty()) std::memcpy(out.data() + filled, part.data(), part.size());
    filled += part.size();
  }
  if (filled > kHeaderBytes) {
    const Le32 crc = crc32c(out.subspan(kHeaderBytes, filled - kHeaderBytes));
    // cairn-allow(memcpy): framing or metadata, never payload
    std::memcpy(out.data() + filled, &crc, sizeof crc);
    filled += sizeof crc;
  }
  if (!header.unchecked) write_checksums(data, out.subspan(filled));
  if (header.elsewhere) data.clear();
  if (inline_data) {
    size_t to = prefix;
    data.for_each([&](std::span<const std::byte> piece) {
      mem::copy_payload(copied_, out.subspan(to, piece.size()), piece);
      to += piece.size();
    });
  }

  if (items_.empty() || items_.back().sealed || !items_.back().data.empty()) items_.emplace_back();
  Item& item = items_.back();
  item.bytes += bytes;
  if (!bulk) {
    if (item.first_bytes == 0) item.first_bytes = header.message_bytes();
    item.run_bytes = item.bytes + (inline_data ? 0 : data.size());
  }
  queued_bytes_ += prefix + data.size();
  if (inline_data) {
    data.clear();
  } else {
    item.data = std::move(data);
  }
}

void Output::seal(Item& item, size_t at) {
  if (item.sealed) return;
  item.sealed = true;
  if (item.run_bytes > item.first_bytes) {
    patch_batch({buffer_.data() + at, item.bytes}, static_cast<uint32_t>(item.run_bytes - item.first_bytes));
  }
}

size_t Output::gather(std::span<iovec> out) {
  size_t n = 0;
  size_t at = front_;
  size_t skip = sent_;
  for (Item& item : items_) {
    if (n == out.size()) break;
    seal(item, at);
    if (skip < item.bytes) {
      out[n++] = {buffer_.data() + at + skip, item.bytes - skip};
      skip = 0;
    } else {
      skip -= item.bytes;
    }
    n += item.data.to_iovecs(out.subspan(n), skip);
    at += item.bytes;
    skip = 0;
  }
  return n;
}

void Output::advance(size_t n) {
  ASSERT(n <= queued_bytes_);
  queued_bytes_ -= n;
  sent_ += n;
  while (!items_.empty()) {
    const Item& first = items_.front();
    const size_t size = first.bytes + first.data.size();
    if (sent_ < size) break;
    sent_ -= size;
    front_ += first.bytes;
    items_.pop_front();
  }
  if (items_.empty()) {
    ASSERT(sent_ == 0 && queued_bytes_ == 0);
    buffer_.clear();
    front_ = 0;
  } else if (front_ >= kCompactAt) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(front_));
    front_ = 0;
  }
}

void Output::clear() {
  items_.clear();
  buffer_.clear();
  front_ = 0;
  sent_ = 0;
  queued_bytes_ = 0;
}

}  // namespace cairn::srpc::stream
