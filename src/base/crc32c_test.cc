#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "base/rng.h"

namespace cairn {
namespace {

// RFC 3720 section B.4.
TEST(Crc32c, KnownAnswers) {
  std::array<uint8_t, 32> bytes{};
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), 0x8a9136aau);
  bytes.fill(0xff);
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), 0x62a8ab43u);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), 0x46dd794eu);
  std::ranges::reverse(bytes);
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), 0x113fdb5cu);
  constexpr uint8_t kReadPdu[48] = {0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0,
                                    0x14, 0,    0, 0, 0, 0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
                                    0x28, 0,    0, 0, 0, 0, 0, 0, 2, 0, 0, 0,    0, 0, 0, 0};
  EXPECT_EQ(crc32c(kReadPdu, sizeof kReadPdu), 0xd9963a56u);
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c("", 0), 0u);
}

uint32_t bit_by_bit(std::span<const std::byte> bytes) {
  uint32_t crc = 0xffffffff;
  for (const std::byte b : bytes) {
    crc ^= static_cast<uint8_t>(b);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

TEST(Crc32c, AgreesWithTheDefinitionAtAnyLengthAndAlignment) {
  SeededRng rng(1);
  std::vector<std::byte> bytes(5000);
  rng.fill(bytes);
  for (int i = 0; i < 500; ++i) {
    const size_t at = rng.below(100);
    const size_t size = rng.below(rng.chance(1, 2) ? 150 : 4900);
    const auto part = std::span<const std::byte>(bytes).subspan(at, size);
    ASSERT_EQ(crc32c(part), bit_by_bit(part)) << at << "+" << size;
  }
}

TEST(Crc32c, ContinuesOverPieces) {
  SeededRng rng(2);
  std::vector<std::byte> bytes(300);
  rng.fill(bytes);
  const std::span<const std::byte> all(bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    ASSERT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all));
  }
}

}  // namespace
}  // namespace cairn
