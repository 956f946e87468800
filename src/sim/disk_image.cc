#include "sim/disk_image.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/rng.h"

namespace cairn::sim {

DiskImage::DiskImage(uint64_t size_bytes, uint64_t garbage_seed)
    : pages_(size_bytes / kPageBytes), garbage_seed_(garbage_seed) {
  ASSERT(size_bytes > 0 && size_bytes % kPageBytes == 0);
}

void DiskImage::fill_unwritten(size_t page, std::span<std::byte, kPageBytes> out) const {
  if (garbage_seed_ == 0) {
    std::memset(out.data(), 0, out.size());
  } else {
    SeededRng(garbage_seed_ + page).fill(out);
  }
}

void DiskImage::drop_page(size_t page) {
  if (pages_[page] != nullptr) spare_.push_back(std::move(pages_[page]));
}

std::unique_ptr<DiskImage::Page> DiskImage::new_page() {
  if (spare_.empty()) return std::make_unique_for_overwrite<Page>();
  auto page = std::move(spare_.back());
  spare_.pop_back();
  return page;
}

void DiskImage::take_page(DiskImage& from, size_t page) {
  ASSERT(from.garbage_seed_ == 0);
  if (from.pages_[page] == nullptr) {
    write_zeroes(page * kPageBytes, kPageBytes);
  } else {
    drop_page(page);
    pages_[page] = std::move(from.pages_[page]);
  }
}

DiskImage::Page& DiskImage::writable(size_t page) {
  auto& slot = pages_[page];
  if (slot == nullptr) {
    slot = new_page();
    fill_unwritten(page, *slot);
  }
  return *slot;
}

void DiskImage::read(uint64_t offset, std::span<std::byte> out) const {
  ASSERT(offset <= size_bytes() && out.size() <= size_bytes() - offset);
  while (!out.empty()) {
    const size_t page = offset / kPageBytes;
    const size_t within = offset % kPageBytes;
    const size_t n = std::min(out.size(), kPageBytes - within);
    if (pages_[page] != nullptr) {
      std::memcpy(out.data(), pages_[page]->data() + within, n);
    } else if (n == kPageBytes) {
      fill_unwritten(page, out.first<kPageBytes>());
    } else {
      Page unwritten;
      fill_unwritten(page, unwritten);
      std::memcpy(out.data(), unwritten.data() + within, n);
    }
    offset += n;
    out = out.subspan(n);
  }
}

void DiskImage::write(uint64_t offset, std::span<const std::byte> in) {
  ASSERT(offset <= size_bytes() && in.size() <= size_bytes() - offset);
  while (!in.empty()) {
    const size_t page = offset / kPageBytes;
    const size_t within = offset % kPageBytes;
    const size_t n = std::min(in.size(), kPageBytes - within);
    if (n == kPageBytes && pages_[page] == nullptr) pages_[page] = new_page();
    std::memcpy(writable(page).data() + within, in.data(), n);
    offset += n;
    in = in.subspan(n);
  }
}

void DiskImage::write_zeroes(uint64_t offset, uint64_t size) {
  ASSERT(offset % kPageBytes == 0 && size % kPageBytes == 0);
  for (uint64_t at = offset; at < offset + size; at += kPageBytes) {
    const size_t page = at / kPageBytes;
    if (garbage_seed_ == 0) {
      drop_page(page);  // reads as zeroes, and costs nothing: formatting writes many
    } else {
      if (pages_[page] == nullptr) pages_[page] = new_page();
      std::memset(pages_[page]->data(), 0, kPageBytes);
    }
  }
}

}  // namespace cairn::sim
