// The CRC32C per 4 KiB of a payload that may lie in slices of any size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/crc32c.h"
#include "base/endian.h"
#include "srpc/wire.h"

namespace cairn::srpc::stream {

// Fed with the bytes in order; writes one entry for each page that is complete, and one for the rest at the end.
class PageChecksums {
 public:
  // Calls entry(index, crc) for each page that this completes.
  template <typename Entry>
  void feed(std::span<const std::byte> bytes, Entry&& entry) {
    while (!bytes.empty()) {
      const size_t n = bytes.size() < kCrcPage - in_page_ ? bytes.size() : kCrcPage - in_page_;
      crc_ = crc32c(bytes.first(n), crc_);
      in_page_ += n;
      bytes = bytes.subspan(n);
      if (in_page_ == kCrcPage) end_page(entry);
    }
  }
  template <typename Entry>
  void finish(Entry&& entry) {
    if (in_page_ > 0) end_page(entry);
  }
  void reset() { *this = {}; }

 private:
  template <typename Entry>
  void end_page(Entry&& entry) {
    entry(index_++, crc_);
    crc_ = 0;
    in_page_ = 0;
  }

  size_t index_ = 0;
  size_t in_page_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace cairn::srpc::stream
