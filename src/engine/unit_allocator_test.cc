#include "engine/unit_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/rng.h"

namespace cairn::engine {
namespace {

std::vector<UnitRun> take(UnitAllocator& allocator, uint32_t count) {
  std::vector<UnitRun> runs;
  allocator.allocate(count, runs);
  return runs;
}

TEST(UnitAllocatorTest, GivesOneRunAndGoesOnBehindIt) {
  UnitAllocator allocator(1000);
  EXPECT_EQ(take(allocator, 64), (std::vector<UnitRun>{{Unit(0), 64}}));
  EXPECT_EQ(take(allocator, 3), (std::vector<UnitRun>{{Unit(64), 3}}));
  allocator.free(Unit(5));
  EXPECT_EQ(allocator.allocate_one(), Unit(67));  // the freed one rests
  EXPECT_EQ(allocator.free_count(), 1000u - 64 - 3 - 1 + 1);
}

TEST(UnitAllocatorTest, PassesByRunsThatAreTooShort) {
  UnitAllocator allocator(256);
  (void)take(allocator, 256);
  for (uint32_t unit : {1u, 3u, 5u, 100u, 101u, 102u, 103u}) allocator.free(Unit(unit));
  EXPECT_EQ(take(allocator, 4), (std::vector<UnitRun>{{Unit(100), 4}}));
  EXPECT_EQ(allocator.free_count(), 3u);
  // Only pieces are left.
  const auto pieces = take(allocator, 3);
  EXPECT_EQ(pieces.size(), 3u);
  EXPECT_EQ(allocator.free_count(), 0u);
}

TEST(UnitAllocatorTest, NeverBeyondTheEnd) {
  UnitAllocator allocator(70);
  EXPECT_EQ(take(allocator, 70), (std::vector<UnitRun>{{Unit(0), 70}}));
  EXPECT_EQ(allocator.free_count(), 0u);
  allocator.free(Unit(69));
  EXPECT_EQ(allocator.allocate_one(), Unit(69));
}

// Against a set, with every mix of sizes.
TEST(UnitAllocatorTest, AgreesWithAModel) {
  SeededRng rng(7);
  for (const uint32_t total : {1u, 63u, 64u, 65u, 1000u}) {
    UnitAllocator allocator(total);
    std::set<uint32_t> used;
    for (int step = 0; step < 3000; ++step) {
      if (!used.empty() && rng.chance(1, 2)) {
        auto victim = used.begin();
        std::advance(victim, static_cast<long>(rng.below(used.size())));
        allocator.free(Unit(*victim));
        used.erase(victim);
        continue;
      }
      const auto count = static_cast<uint32_t>(rng.below(std::min(20u, allocator.free_count()) + 1));
      uint32_t got = 0;
      for (const UnitRun& run : take(allocator, count)) {
        ASSERT_GT(run.count, 0u);
        for (uint32_t i = 0; i < run.count; ++i) {
          ASSERT_LT(run.first.value + i, total);
          ASSERT_TRUE(used.insert(run.first.value + i).second) << "given twice";
        }
        got += run.count;
      }
      ASSERT_EQ(got, count);
      ASSERT_EQ(allocator.free_count(), total - used.size());
    }
    for (uint32_t unit = 0; unit < total; ++unit) ASSERT_EQ(allocator.in_use(Unit(unit)), used.contains(unit));
  }
}

}  // namespace
}  // namespace cairn::engine
