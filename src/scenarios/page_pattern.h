// The bytes that the engine scenario writes: every page tells which write and which place it is of, so that a wrong
// page is found and named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn::scenarios {

// One page of a chunk: the first `valid` bytes are of write `version`, the rest are zeroes. Version 0: all zeroes.
struct PageVersion {
  uint64_t version = 0;
  uint32_t valid = 0;
  bool operator==(const PageVersion&) const = default;
};

// The bytes of page number `page` of the chunk in write `version`.
void fill_page(std::span<std::byte> out, uint64_t version, uint32_t page);
// Whether `bytes`, which begin at `offset` within the page, are what `expected` says.
bool page_matches(std::span<const std::byte> bytes, uint32_t offset, PageVersion expected, uint32_t page);
// For error messages: the write and page that the bytes claim to be of, when they are a page of ours.
struct PageClaim {
  bool known = false;
  uint64_t version = 0;
  uint32_t page = 0;
};
PageClaim claim_of(std::span<const std::byte> page_start);

}  // namespace cairn::scenarios
