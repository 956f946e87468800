#include "engine/dirty_pages.h"

#include <gtest/gtest.h>

#include "engine/testing/rig.h"

namespace cairn::engine {
namespace {

class DirtyPagesTest : public ::testing::Test {
 protected:
  DirtyPage page(uint64_t lsn) {
    return {.lsn = Lsn(lsn), .crc = static_cast<uint32_t>(lsn), .buf = *rig.pool->try_alloc(kPageBytes)};
  }
  test::Rig rig;
  DirtyPages pages{16 * kPageBytes};
};

TEST_F(DirtyPagesTest, TheNewestIsFound) {
  pages.put(HomePage(33), page(1));
  EXPECT_EQ(pages.find(HomePage(33))->lsn, Lsn(1));
  pages.begin_flush();
  EXPECT_EQ(pages.find(HomePage(33))->lsn, Lsn(1));
  pages.put(HomePage(33), page(2));
  EXPECT_EQ(pages.find(HomePage(33))->lsn, Lsn(2));
  EXPECT_EQ(pages.flush_layer().at(HomePage(33)).lsn, Lsn(1));
  const auto layer = pages.end_flush();
  EXPECT_EQ(layer.size(), 1u);
  EXPECT_EQ(pages.find(HomePage(33))->lsn, Lsn(2));
  EXPECT_EQ(pages.memory_bytes(), kPageBytes);
}

TEST_F(DirtyPagesTest, AFailedFlushGoesBackUnderWhatIsNewer) {
  pages.put(HomePage(1), page(1));
  pages.put(HomePage(2), page(2));
  pages.begin_flush();
  pages.put(HomePage(2), page(3));
  pages.abort_flush();
  EXPECT_EQ(pages.find(HomePage(1))->lsn, Lsn(1));
  EXPECT_EQ(pages.find(HomePage(2))->lsn, Lsn(3));
  EXPECT_EQ(pages.pages(), 2u);
  EXPECT_EQ(pages.memory_bytes(), 2 * kPageBytes);
  pages.begin_flush();
  EXPECT_EQ(pages.flush_layer().size(), 2u);
  (void)pages.end_flush();
}

TEST_F(DirtyPagesTest, DropsUnits) {
  for (uint64_t p : {15u, 16u, 20u, 31u, 32u}) pages.put(HomePage(p), page(p));
  EXPECT_FALSE(pages.none_of(Unit(1)));
  pages.drop_unit(Unit(1));
  EXPECT_TRUE(pages.none_of(Unit(1)));
  EXPECT_FALSE(pages.none_of(Unit(0)));
  EXPECT_FALSE(pages.none_of(Unit(2)));
  pages.drop(HomePage(15));
  EXPECT_EQ(pages.pages(), 1u);
  EXPECT_EQ(pages.memory_bytes(), kPageBytes);
}

TEST_F(DirtyPagesTest, MemoryIsBoundedPagesAreNot) {
  const size_t free = rig.pool->free_bytes();
  for (uint64_t p = 0; p < 100; ++p) pages.put(HomePage(p), page(p + 1));
  EXPECT_EQ(pages.pages(), 100u);
  EXPECT_EQ(pages.memory_bytes(), 16 * kPageBytes);
  EXPECT_EQ(free - rig.pool->free_bytes(), 16 * kPageBytes);
  EXPECT_TRUE(pages.find(HomePage(0))->buf.empty());  // the oldest gave way
  EXPECT_FALSE(pages.find(HomePage(99))->buf.empty());
  EXPECT_EQ(pages.shed(1), kPageBytes);
  pages.begin_flush();
  EXPECT_EQ(pages.shed(UINT64_MAX), 15 * kPageBytes);
  EXPECT_EQ(pages.memory_bytes(), 0u);
  (void)pages.end_flush();
}

TEST_F(DirtyPagesTest, OverwritingOnePageForeverCostsOnePage) {
  for (uint64_t i = 1; i < 100'000; ++i) pages.put(HomePage(7), page(i));
  EXPECT_EQ(pages.memory_bytes(), kPageBytes);
  EXPECT_EQ(pages.pages(), 1u);
}

}  // namespace
}  // namespace cairn::engine
