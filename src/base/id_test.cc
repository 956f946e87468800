#include "base/id.h"

#include <gtest/gtest.h>

#include <unordered_set>

#include "base/endian.h"
#include "base/hex.h"
#include "base/strong.h"

namespace cairn {
namespace {

TEST(Hex, GoesThereAndBack) {
  const uint8_t bytes[] = {0x00, 0x7f, 0x80, 0xff, 0xab};
  const auto text = to_hex(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(text, "007f80ffab");
  uint8_t back[5] = {};
  EXPECT_TRUE(from_hex("007F80fFaB", std::as_writable_bytes(std::span(back))));
  EXPECT_TRUE(std::ranges::equal(bytes, back));
  EXPECT_EQ(to_hex({}), "");
  EXPECT_TRUE(from_hex("", {}));
}

TEST(Hex, RefusesOtherLengthsAndCharacters) {
  uint8_t out[2];
  for (const char* text : {"", "0", "000", "00000", "00 0", "0x00", "00g0", "-100", "00\xc3\xa9"}) {
    EXPECT_FALSE(from_hex(text, std::as_writable_bytes(std::span(out)))) << text;
  }
  EXPECT_FALSE(from_hex(std::string_view("00\0\0", 4), std::as_writable_bytes(std::span(out))));
}

TEST(Id128, PrintsParsesAndOrders) {
  SeededRng rng(3);
  std::unordered_set<Id128> seen;
  for (int i = 0; i < 1000; ++i) {
    const Id128 id = Id128::random(rng);
    EXPECT_EQ(id.to_string().size(), 32u);
    EXPECT_EQ(*Id128::parse(id.to_string()), id);
    EXPECT_TRUE(seen.insert(id).second);
  }
  EXPECT_TRUE(Id128().is_zero());
  EXPECT_FALSE(Id128::parse("00"));
  EXPECT_FALSE(Id128::parse(std::string(31, '0') + "x"));
  EXPECT_FALSE(Id128::parse(std::string(33, '0')));
  // Bytewise, as the digits sort.
  EXPECT_LT(*Id128::parse("00000000000000000000000000000100"), *Id128::parse("01000000000000000000000000000000"));
}

TEST(Id128, CountersInTheTailHashApart) {
  std::unordered_set<size_t> hashes;
  Id128 id;
  for (int i = 0; i < 256; ++i) {
    id.bytes[15] = static_cast<uint8_t>(i);
    hashes.insert(std::hash<Id128>()(id) >> 48);
  }
  EXPECT_GT(hashes.size(), 200u);
}

struct Record {
  Le16 a;
  Le64 b;
  Le32 c;
};
static_assert(sizeof(Record) == 14);

TEST(Endian, LittleEndianWithoutPadding) {
  Record record{.a = 0x0102, .b = 0x0102030405060708, .c = 0xdeadbeef};
  const uint8_t expected[] = {2, 1, 8, 7, 6, 5, 4, 3, 2, 1, 0xef, 0xbe, 0xad, 0xde};
  EXPECT_EQ(std::memcmp(&record, expected, sizeof record), 0);
  record.b = record.b + 1;
  EXPECT_EQ(record.b, 0x0102030405060709u);
  EXPECT_EQ(Record().c, 0u);
}

TEST(Strong, MovesByDistancesAndComparesAlike) {
  using Index = Strong<uint64_t, struct IndexTag>;
  Index index(5);
  EXPECT_EQ((index + 3) - index, 3u);
  EXPECT_EQ(++index, Index(6));
  EXPECT_LT(index - 1, index);
  static_assert(!std::is_convertible_v<uint64_t, Index>);
  static_assert(!std::is_convertible_v<Index, Strong<uint64_t, struct TermTag>>);
}

}  // namespace
}  // namespace cairn
