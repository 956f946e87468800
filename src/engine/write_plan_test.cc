#include "engine/write_plan.h"

#include <gtest/gtest.h>

namespace cairn::engine {
namespace {

struct Case {
  uint32_t offset;
  uint32_t length;
  WritePlan within;     // other data of the chunk may lie behind
  WritePlan extending;  // nothing does
};

TEST(WritePlanTest, SplitsAtUnitBoundaries) {
  const uint32_t k = 1024;
  const Case cases[] = {
      {0, 1, {1, 0, 0}, {1, 0, 0}},
      {0, 4 * k, {1, 0, 0}, {1, 0, 0}},
      {0, 60 * k, {15, 0, 0}, {15, 0, 0}},
      {0, 64 * k - 1, {16, 0, 0}, {16, 0, 0}},  // less than a unit, though it has 16 pages
      {0, 64 * k, {0, 1, 0}, {0, 1, 0}},
      {0, 64 * k + 1, {0, 1, 1}, {0, 2, 0}},
      {0, 100 * k, {0, 1, 9}, {0, 2, 0}},
      {4 * k, 64 * k, {16, 0, 0}, {16, 0, 0}},  // 60 KiB aligned: not worth a unit
      {4 * k, 124 * k, {15, 1, 0}, {15, 1, 0}},
      {4 * k, 125 * k, {15, 1, 1}, {15, 2, 0}},
      {60 * k, 200 * k, {1, 3, 1}, {1, 4, 0}},
      {0, 4096 * k, {0, 64, 0}, {0, 64, 0}},
      {4 * k, 4092 * k, {15, 63, 0}, {15, 63, 0}},
      {64 * k, 128 * k - 100, {0, 2, 0}, {0, 2, 0}},  // sixteen pages, the last one not full
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::to_string(c.offset) + "+" + std::to_string(c.length));
    EXPECT_EQ(plan_write(c.offset, c.length, false), c.within);
    EXPECT_EQ(plan_write(c.offset, c.length, true), c.extending);
    EXPECT_TRUE(is_possible(c.within, c.offset, c.length));
    EXPECT_TRUE(is_possible(c.extending, c.offset, c.length));
  }
}

// Everything admission relies on, for every write there is.
TEST(WritePlanTest, AlwaysAddsUp) {
  for (uint32_t offset = 0; offset < kChunkBytes; offset += 12 * kPageBytes) {
    for (uint32_t length = 1; length <= kChunkBytes - offset; length += 7777) {
      const WritePlan within = plan_write(offset, length, false);
      const WritePlan extending = plan_write(offset, length, true);
      ASSERT_EQ(within.inline_pages() + within.unit_count * kPagesPerUnit,
                within.unit_count * kPagesPerUnit > pages_of(length) - within.inline_pages()
                    ? within.inline_pages() + within.unit_count * kPagesPerUnit
                    : pages_of(length));
      ASSERT_LE(within.inline_pages(), 31u);
      ASSERT_LE(inline_units(within, offset, length), 2u);
      ASSERT_EQ(within.unit_count + inline_units(within, offset, length),
                extending.unit_count + inline_units(extending, offset, length));
      if (within.unit_count > 0) {
        ASSERT_EQ((offset / kPageBytes + within.head_pages) % kPagesPerUnit, 0u);
      }
    }
  }
}

TEST(WritePlanTest, RefusesWhatItNeverMakes) {
  EXPECT_FALSE(is_possible({0, 1, 0}, 4096, 65536));
  EXPECT_FALSE(is_possible({0, 0, 0}, 0, 4096));
  EXPECT_FALSE(is_possible({1, 0, 0}, 0, 0));
  EXPECT_FALSE(is_possible({1, 0, 0}, 1, 4096));
  EXPECT_FALSE(is_possible({0, 64, 0}, kUnitBytes, kChunkBytes));
  EXPECT_FALSE(is_possible({16, 0, 0}, 0, 65536));
}

}  // namespace
}  // namespace cairn::engine
