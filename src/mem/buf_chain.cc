#include "mem/buf_chain.h"

#include <algorithm>
#include <cstring>

namespace cairn::mem {

void BufChain::append(Buf buf) {
  if (buf.empty()) return;
  size_ += buf.size();
  if (!slices_.empty()) {
    Buf& last = slices_.back();
    if (last.block() == buf.block() && last.data() + last.size() == buf.data()) {
      last.extend(buf.size());
      return;
    }
  }
  slices_.push_back(std::move(buf));
}

void BufChain::append(BufChain chain) {
  for (Buf& buf : chain.slices_) append(std::move(buf));
}

BufChain BufChain::slice(size_t offset, size_t size) const {
  ASSERT(offset <= size_ && size <= size_ - offset);
  BufChain part;
  for (const Buf& buf : slices_) {
    if (size == 0) break;
    if (offset >= buf.size()) {
      offset -= buf.size();
      continue;
    }
    const size_t n = std::min(size, buf.size() - offset);
    part.append(buf.slice(offset, n));
    offset = 0;
    size -= n;
  }
  return part;
}

BufChain BufChain::split_front(size_t size) {
  BufChain front = slice(0, size);
  trim_front(size);
  return front;
}

void BufChain::trim_front(size_t size) {
  ASSERT(size <= size_);
  size_ -= size;
  size_t whole = 0;
  while (size > 0 && size >= slices_[whole].size()) size -= slices_[whole++].size();
  slices_.erase(slices_.begin(), slices_.begin() + static_cast<ptrdiff_t>(whole));
  if (size > 0) slices_.front().trim_front(size);
}

size_t BufChain::to_iovecs(std::span<iovec> out, size_t skip) const {
  size_t n = 0;
  for (const Buf& buf : slices_) {
    if (n == out.size()) break;
    if (skip >= buf.size()) {
      skip -= buf.size();
      continue;
    }
    // iovec lacks const; who writes into a chain's memory says so by other means.
    out[n++] = {const_cast<std::byte*>(buf.data()) + skip, buf.size() - skip};
    skip = 0;
  }
  return n;
}

void BufChain::copy_metadata_to(std::span<std::byte> out) const {
  ASSERT(out.size() == size_);
  size_t at = 0;
  for (const Buf& buf : slices_) {
    // cairn-allow(memcpy): headers and other small metadata, as the name says
    std::memcpy(out.data() + at, buf.data(), buf.size());
    at += buf.size();
  }
}

}  // namespace cairn::mem
