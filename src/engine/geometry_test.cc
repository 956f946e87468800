#include "engine/geometry.h"

#include <gtest/gtest.h>

namespace cairn::engine {
namespace {

struct PlanCase {
  uint64_t device_mib;
  uint32_t wanted;
  uint32_t shards;
  uint64_t shard_mib;
  uint64_t journal_mib;
};

TEST(PlanDevice, CutsIntoShards) {
  const PlanCase cases[] = {
      {256, 8, 3, 85, 16},           // fewer shards, so that each has 64 MiB
      {513, 8, 8, 64, 16},           // exactly eight
      {1024, 8, 8, 127, 16},         // the rest of a MiB per shard is left over
      {4096, 8, 8, 511, 31},         // a sixteenth
      {64 * 1024, 8, 8, 8191, 256},  // the most
      {1024 * 1024, 8, 8, 131071, 256},
      {1024, 1, 1, 1023, 63},
  };
  for (const PlanCase& c : cases) {
    SCOPED_TRACE(c.device_mib);
    const auto geometry = plan_device(c.device_mib * kMiB, c.wanted);
    ASSERT_TRUE(geometry);
    EXPECT_EQ(geometry->shard_count, c.shards);
    EXPECT_EQ(geometry->shard_bytes, c.shard_mib * kMiB);
    EXPECT_EQ(geometry->journal_bytes, c.journal_mib * kMiB);
    EXPECT_LE(geometry->end(), c.device_mib * kMiB);
    for (uint32_t i = 0; i < geometry->shard_count; ++i) {
      const auto layout = ShardLayout::of({.device = {},
                                           .shard = i,
                                           .offset = geometry->shard_offset(i),
                                           .length = geometry->shard_bytes,
                                           .journal_bytes = geometry->journal_bytes});
      ASSERT_TRUE(layout);
      // Adjacent parts, nothing beyond the shard's end.
      EXPECT_EQ(layout->superblock_offset(kSuperblockSlots), layout->journal_offset);
      EXPECT_EQ(layout->journal_offset + layout->journal_bytes, layout->data_offset);
      EXPECT_EQ(layout->unit_offset(Unit(layout->unit_count)), geometry->shard_offset(i + 1));
    }
  }
}

TEST(PlanDevice, SaysTheMinimum) {
  const auto geometry = plan_device(255 * kMiB, 8);
  ASSERT_FALSE(geometry);
  EXPECT_EQ(geometry.error().code(), Errc::invalid_argument);
  EXPECT_NE(geometry.error().message().find("256 MiB"), std::string::npos);
}

TEST(ShardLayoutTest, RefusesImpossibleExtents) {
  const ShardExtent good{.device = {}, .shard = 0, .offset = kMiB, .length = 64 * kMiB, .journal_bytes = 16 * kMiB};
  EXPECT_TRUE(ShardLayout::of(good));
  auto bad = good;
  bad.offset += 512;
  EXPECT_FALSE(ShardLayout::of(bad));
  bad = good;
  bad.length = 16 * kMiB;  // no data area
  EXPECT_FALSE(ShardLayout::of(bad));
  bad = good;
  bad.journal_bytes = 4096;
  EXPECT_FALSE(ShardLayout::of(bad));
  bad = good;
  bad.length = UINT64_MAX / kMiB * kMiB;
  EXPECT_FALSE(ShardLayout::of(bad));
}

TEST(Rounding, Pages) {
  EXPECT_EQ(pages_of(0), 0u);
  EXPECT_EQ(pages_of(1), 1u);
  EXPECT_EQ(pages_of(4096), 1u);
  EXPECT_EQ(pages_of(4097), 2u);
  EXPECT_EQ(home_page(Unit(3), 5).value, 53u);
}

}  // namespace
}  // namespace cairn::engine
