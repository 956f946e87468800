// BufChain: a sequence of Bufs that reads as one run of bytes.
#pragma once

#include <sys/uio.h>

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <span>
#include <utility>

#include "mem/buf.h"

namespace cairn::mem {

class BufChain {
 public:
  // Requests of up to 4 MiB in 1 MiB blocks need no allocation.
  static constexpr size_t kInline = 4;
  using Slices = boost::container::small_vector<Buf, kInline>;

  BufChain() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): one Buf is a chain of one
  BufChain(Buf buf) { append(std::move(buf)); }
  BufChain(const BufChain&) = default;
  BufChain& operator=(const BufChain&) = default;
  // Most chains that are moved are empty or one slice: worth a way of their own, as each call moves some ten of them.
  BufChain(BufChain&& other) noexcept { take(other); }
  BufChain& operator=(BufChain&& other) noexcept {
    if (this == &other) return *this;
    slices_.clear();
    take(other);
    return *this;
  }
  ~BufChain() = default;

  size_t size() const { return size_; }  // bytes
  bool empty() const { return size_ == 0; }
  const Slices& slices() const { return slices_; }
  void clear() {
    slices_.clear();
    size_ = 0;
  }

  // Empty Bufs are dropped; one that continues the last slice is merged with it.
  void append(Buf buf);
  void append(BufChain chain);

  // Shares the blocks.
  BufChain slice(size_t offset, size_t size) const;
  // Removes and returns the first `size` bytes.
  BufChain split_front(size_t size);
  void trim_front(size_t size);

  // Calls f(std::span<const std::byte>) for each slice in order.
  template <typename F>
  void for_each(F&& f) const {
    for (const Buf& buf : slices_) f(buf.bytes());
  }
  // Fills at most `out.size()` entries and returns how many. `skip` bytes at the front are left out.
  size_t to_iovecs(std::span<iovec> out, size_t skip = 0) const;
  // Copies small, non-payload content (headers, metadata) out; size() == out.size().
  void copy_metadata_to(std::span<std::byte> out) const;

 private:
  // Into an empty one.
  void take(BufChain& other) noexcept {
    size_ = std::exchange(other.size_, 0);
    if (other.slices_.empty()) return;
    if (other.slices_.size() == 1) {
      slices_.push_back(std::move(other.slices_.front()));
    } else {
      slices_ = std::move(other.slices_);
    }
    other.slices_.clear();
  }

  Slices slices_;
  size_t size_ = 0;
};

}  // namespace cairn::mem
