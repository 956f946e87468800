#include "replica/lease_table.h"

#include <gtest/gtest.h>

#include "replica/testing/test_loop.h"

namespace cairn::replica {
namespace {

Id128 id(uint32_t number) {
  return {{static_cast<uint8_t>(number >> 16), static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number)}};
}

TEST(LeaseTable, HoldsUntilTheTimeIsOver) {
  TestLoop loop;
  LeaseTable table(loop);
  EXPECT_FALSE(table.held(id(1)));
  ASSERT_TRUE(table.renew(id(1), seconds(10)));
  EXPECT_TRUE(table.held(id(1)));
  EXPECT_FALSE(table.held(id(2)));
  loop.run_for(seconds(9));
  ASSERT_TRUE(table.renew(id(1), seconds(10)));
  loop.run_for(seconds(9));
  EXPECT_TRUE(table.held(id(1)));
  loop.run_for(seconds(1));
  EXPECT_FALSE(table.held(id(1)));
  EXPECT_EQ(table.memory(), seconds(19));
}

TEST(LeaseTable, AShorterRenewalTakesNothingAway) {
  TestLoop loop;
  LeaseTable table(loop);
  ASSERT_TRUE(table.renew(id(1), seconds(10)));
  ASSERT_TRUE(table.renew(id(1), seconds(1)));
  loop.run_for(seconds(5));
  EXPECT_TRUE(table.held(id(1)));
}

TEST(LeaseTable, RefusesWhatIsTooLongOrTooMuch) {
  TestLoop loop;
  LeaseTable table(loop);
  EXPECT_EQ(table.renew(id(1), seconds(61)).code(), Errc::invalid_argument);
  EXPECT_EQ(table.renew(id(1), seconds(0)).code(), Errc::invalid_argument);
  for (uint32_t i = 0; i < LeaseTable::kMaxLeases; ++i) ASSERT_TRUE(table.renew(id(i), seconds(10)));
  EXPECT_EQ(table.renew(id(LeaseTable::kMaxLeases), seconds(10)).code(), Errc::busy);
  ASSERT_TRUE(table.renew(id(0), seconds(10))) << "who has one keeps it";
  loop.run_for(seconds(10));
  EXPECT_TRUE(table.renew(id(LeaseTable::kMaxLeases), seconds(10)));
  EXPECT_EQ(table.size(), 1u) << "expired ones are dropped";
}

}  // namespace
}  // namespace cairn::replica
