// DiskImage: the bytes of a simulated disk, in pages that exist once they have been written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cairn::sim {

class DiskImage {
 public:
  static constexpr size_t kPageBytes = 4096;

  // What a page holds that was never written: zeroes, or with a `garbage_seed` other than zero something else at each
  // place, like a disk with a past.
  explicit DiskImage(uint64_t size_bytes, uint64_t garbage_seed = 0);

  uint64_t size_bytes() const { return pages_.size() * kPageBytes; }
  void read(uint64_t offset, std::span<std::byte> out) const;
  void write(uint64_t offset, std::span<const std::byte> in);
  // Whole pages.
  void write_zeroes(uint64_t offset, uint64_t size);
  // Makes the page as if never written.
  void drop_page(size_t page);
  // What the page holds in `from`, which looks as if it was never written afterwards.
  void take_page(DiskImage& from, size_t page);
  bool has_page(size_t page) const { return pages_[page] != nullptr; }

 private:
  using Page = std::array<std::byte, kPageBytes>;
  void fill_unwritten(size_t page, std::span<std::byte, kPageBytes> out) const;
  Page& writable(size_t page);
  std::unique_ptr<Page> new_page();

  std::vector<std::unique_ptr<Page>> pages_;
  // Pages come and go with each write; the allocator takes longer over them than everything else here.
  std::vector<std::unique_ptr<Page>> spare_;
  uint64_t garbage_seed_;
};

}  // namespace cairn::sim
