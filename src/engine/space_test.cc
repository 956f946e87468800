#include "engine/space.h"

#include <gtest/gtest.h>

namespace cairn::engine {
namespace {

class SpaceTest : public ::testing::Test {
 protected:
  void check() const { EXPECT_EQ(space.total(), space.free() + space.pending() + space.used() + space.freeing()); }
  std::vector<Unit> write(uint32_t count) {
    EXPECT_TRUE(space.try_reserve(count, 0));
    std::vector<UnitRun> runs;
    space.take(count, runs);
    space.pending_to_used(count);
    std::vector<Unit> units;
    for (const UnitRun& run : runs) {
      for (uint32_t i = 0; i < run.count; ++i) units.push_back(run.first + i);
    }
    return units;
  }
  size_t release() {
    const auto units = space.take_released(1000);
    for (const Unit unit : units) space.free_unit(unit);
    check();
    return units.size();
  }

  Space space{100, 10};
};

TEST_F(SpaceTest, PromisesNoMoreThanThereIs) {
  EXPECT_TRUE(space.try_reserve(60, 10));
  EXPECT_FALSE(space.try_reserve(31, 10));
  EXPECT_TRUE(space.try_reserve(30, 10));
  EXPECT_FALSE(space.try_reserve(1, 10));
  EXPECT_TRUE(space.try_reserve(10, 0));
  EXPECT_FALSE(space.try_reserve(1, 0));
  space.unreserve(100);
  check();
}

TEST_F(SpaceTest, ASupersededUnitWaitsForItsCheckpoint) {
  const auto units = write(5);
  space.supersede_used(units[0], Lsn(4096));
  space.supersede_used(units[1], Lsn(8192));
  check();
  EXPECT_EQ(release(), 0u);
  EXPECT_FALSE(space.would_release(Lsn(4096)));
  space.release_below(Lsn(4096));  // the entry at 4096 is not covered by it
  EXPECT_EQ(release(), 0u);
  EXPECT_TRUE(space.would_release(Lsn(8192)));
  space.release_below(Lsn(8192));
  EXPECT_EQ(release(), 1u);
  space.release_below(Lsn(20480));
  EXPECT_EQ(release(), 1u);
  EXPECT_EQ(space.free(), 97u);
}

TEST_F(SpaceTest, ASupersededUnitWaitsForReadsThatMayUseIt) {
  const auto units = write(3);
  const uint64_t early = space.enter_read();
  space.supersede_used(units[0], Lsn(4096));
  space.release_below(Lsn(8192));
  const uint64_t late = space.enter_read();  // can't have seen the unit
  EXPECT_EQ(release(), 0u);
  space.leave_read(early);
  EXPECT_EQ(release(), 1u);
  // And the next one waits for `late`.
  space.supersede_used(units[1], Lsn(8192));
  space.release_below(Lsn(12288));
  EXPECT_EQ(release(), 0u);
  space.leave_read(late);
  EXPECT_EQ(release(), 1u);
}

TEST_F(SpaceTest, KnowsTwoOwners) {
  EXPECT_TRUE(space.claim_used(Unit(5)));
  EXPECT_FALSE(space.claim_used(Unit(5)));
  EXPECT_FALSE(space.claim_pending(Unit(5)));
  EXPECT_FALSE(space.claim_used(Unit(100)));
  EXPECT_TRUE(space.claim_pending(Unit(99)));
  check();
}

}  // namespace
}  // namespace cairn::engine
