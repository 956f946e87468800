#include "scenarios/page_pattern.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/types.h"

namespace cairn::scenarios {
namespace {

constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
constexpr size_t kWords = engine::kPageBytes / sizeof(uint64_t);

// The page's first two words are what it is; the rest is a sequence that depends on them.
uint64_t start_of(uint64_t version, uint32_t page) { return (version << 12 ^ page) * 0xd1342543de82ef95; }

// Loops over whole pages, so that the compiler vectorises them: this is most of what a seed computes.
void fill_whole_page(std::byte* out, uint64_t version, uint32_t page) {
  const uint64_t start = start_of(version, page);
  for (size_t i = 0; i < kWords; ++i) {
    const uint64_t word = start + i * kStep;
    std::memcpy(out + i * sizeof word, &word, sizeof word);
  }
  const uint64_t head[2] = {version, ~uint64_t{page}};
  std::memcpy(out, head, sizeof head);
}

bool whole_page_matches(const std::byte* in, uint64_t version, uint32_t page) {
  const uint64_t start = start_of(version, page);
  uint64_t difference = 0;
  for (size_t i = 2; i < kWords; ++i) {
    uint64_t word;
    std::memcpy(&word, in + i * sizeof word, sizeof word);
    difference |= word ^ (start + i * kStep);
  }
  const uint64_t head[2] = {version, ~uint64_t{page}};
  return difference == 0 && std::memcmp(in, head, sizeof head) == 0;
}

}  // namespace

void fill_page(std::span<std::byte> out, uint64_t version, uint32_t page) {
  if (out.size() == engine::kPageBytes) {
    fill_whole_page(out.data(), version, page);
  } else {
    std::array<std::byte, engine::kPageBytes> whole;
    fill_whole_page(whole.data(), version, page);
    std::memcpy(out.data(), whole.data(), out.size());
  }
}

bool page_matches(std::span<const std::byte> bytes, uint32_t offset, PageVersion expected, uint32_t page) {
  if (bytes.size() == engine::kPageBytes && expected.valid == engine::kPageBytes) {
    return whole_page_matches(bytes.data(), expected.version, page);
  }
  std::array<std::byte, engine::kPageBytes> wanted{};
  if (expected.version != 0) fill_page(std::span(wanted).first(expected.valid), expected.version, page);
  return std::memcmp(bytes.data(), wanted.data() + offset, bytes.size()) == 0;
}

PageClaim claim_of(std::span<const std::byte> page_start) {
  uint64_t words[3];
  if (page_start.size() < sizeof words) return {};
  std::memcpy(words, page_start.data(), sizeof words);
  const auto page = static_cast<uint32_t>(~words[1]);
  const bool known = words[2] == start_of(words[0], page) + 2 * kStep;
  return {.known = known, .version = words[0], .page = page};
}

}  // namespace cairn::scenarios
