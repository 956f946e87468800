#include "engine/page_cache.h"

#include <gtest/gtest.h>

#include "engine/testing/rig.h"

namespace cairn::engine {
namespace {

class PageCacheTest : public ::testing::Test {
 protected:
  mem::Buf memory(size_t size) { return *rig.pool->try_alloc(size); }
  test::Rig rig;
  Gauge gauge;
  PageCache cache{100 * kPageBytes, gauge};
};

TEST_F(PageCacheTest, GivesPagesAndWholeUnits) {
  const mem::Buf page = memory(kPageBytes);
  cache.insert_page(home_page(Unit(4), 3), page);
  EXPECT_EQ(cache.find_page(home_page(Unit(4), 3)).data(), page.data());
  EXPECT_FALSE(cache.find_page(home_page(Unit(4), 2)));
  EXPECT_FALSE(cache.find_unit(Unit(4), 1));

  const mem::Buf whole = memory(kUnitBytes);
  cache.insert_unit(Unit(4), whole);
  EXPECT_EQ(cache.find_page(home_page(Unit(4), 3)).data(), whole.data() + 3 * kPageBytes);
  EXPECT_EQ(cache.find_unit(Unit(4), 16).size(), kUnitBytes);
  EXPECT_EQ(cache.bytes(), kUnitBytes);

  const mem::Buf part = memory(2 * kPageBytes);
  cache.insert_unit(Unit(5), part);
  EXPECT_EQ(cache.find_unit(Unit(5), 2).size(), 2 * kPageBytes);
  EXPECT_FALSE(cache.find_unit(Unit(5), 3));
  EXPECT_FALSE(cache.find_page(home_page(Unit(5), 2)));
}

TEST_F(PageCacheTest, ErasesWhatWasSuperseded) {
  cache.insert_unit(Unit(4), memory(kUnitBytes));
  cache.erase_page(home_page(Unit(4), 0));
  EXPECT_FALSE(cache.find_page(home_page(Unit(4), 0)));
  cache.insert_page(home_page(Unit(4), 1), memory(kPageBytes));
  cache.insert_page(home_page(Unit(4), 2), memory(kPageBytes));
  cache.erase_page(home_page(Unit(4), 1));
  EXPECT_FALSE(cache.find_page(home_page(Unit(4), 1)));
  EXPECT_TRUE(cache.find_page(home_page(Unit(4), 2)));
  cache.erase_unit(Unit(4));
  EXPECT_FALSE(cache.find_page(home_page(Unit(4), 2)));
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_EQ(gauge.value(), 0);
}

TEST_F(PageCacheTest, GivesWayToALowerLimit) {
  for (uint32_t i = 0; i < 80; ++i) cache.insert_page(home_page(Unit(i), 0), memory(kPageBytes));
  EXPECT_EQ(cache.bytes(), 80 * kPageBytes);
  cache.set_limit(30 * kPageBytes);
  EXPECT_EQ(cache.bytes(), 30 * kPageBytes);
  cache.insert_page(home_page(Unit(100), 0), memory(kPageBytes));
  EXPECT_EQ(cache.bytes(), 30 * kPageBytes);
  cache.set_limit(0);
  EXPECT_EQ(cache.bytes(), 0u);
  cache.insert_page(home_page(Unit(100), 0), memory(kPageBytes));
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST_F(PageCacheTest, StaysWithinItsLimit) {
  SeededRng rng(5);
  const size_t free = rig.pool->free_bytes();
  for (int i = 0; i < 20000; ++i) {
    const Unit unit(static_cast<uint32_t>(rng.below(200)));
    switch (rng.below(5)) {
      case 0:
        cache.insert_unit(unit, memory(kPageBytes * (1 + rng.below(16))));
        break;
      case 1:
        cache.erase_page(home_page(unit, static_cast<uint32_t>(rng.below(16))));
        break;
      case 2:
        if (rng.chance(1, 10)) cache.erase_unit(unit);
        break;
      default: {
        const HomePage home = home_page(unit, static_cast<uint32_t>(rng.below(16)));
        if (!cache.find_page(home)) cache.insert_page(home, memory(kPageBytes));
      }
    }
    ASSERT_LE(cache.bytes(), 100 * kPageBytes);
    ASSERT_EQ(cache.bytes(), static_cast<uint64_t>(gauge.value()));
  }
  cache.clear();
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_EQ(rig.pool->free_bytes(), free);
}

TEST_F(PageCacheTest, AScanDisplacesNothingThatIsInUse) {
  for (uint32_t unit = 0; unit < 50; ++unit) cache.insert_page(home_page(Unit(unit), 0), memory(kPageBytes));
  for (int times = 0; times < 2; ++times) {
    for (uint32_t unit = 0; unit < 50; ++unit) EXPECT_TRUE(cache.find_page(home_page(Unit(unit), 0)));
  }
  for (uint32_t unit = 1000; unit < 2000; ++unit) cache.insert_page(home_page(Unit(unit), 0), memory(kPageBytes));
  int kept = 0;
  for (uint32_t unit = 0; unit < 50; ++unit) kept += cache.find_page(home_page(Unit(unit), 0)) ? 1 : 0;
  EXPECT_EQ(kept, 50);
}

TEST_F(PageCacheTest, GivesEverythingBackOnDemand) {
  for (uint32_t unit = 0; unit < 50; ++unit) cache.insert_page(home_page(Unit(unit), 0), memory(kPageBytes));
  EXPECT_TRUE(cache.evict(10 * kPageBytes));
  EXPECT_EQ(cache.bytes(), 40 * kPageBytes);
  EXPECT_TRUE(cache.evict(UINT64_MAX));
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_FALSE(cache.evict(1));
}

}  // namespace
}  // namespace cairn::engine
