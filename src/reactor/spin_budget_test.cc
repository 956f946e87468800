#include "reactor/spin_budget.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr Duration kWake = microseconds(30);
constexpr Duration kShort = microseconds(60);
constexpr Duration kLong = milliseconds(50);

TEST(SpinBudget, FixedModesDontMove) {
  SpinBudget performance(Mode::performance, kWake);
  SpinBudget economy(Mode::economy, kWake);
  for (int i = 0; i < 100; ++i) {
    for (SpinBudget* budget : {&performance, &economy}) {
      budget->idle_ended(i % 2 == 0 ? kShort : kLong, i % 3 == 0);
      budget->preempted();
    }
  }
  EXPECT_EQ(performance.budget().ns, INT64_MAX);
  EXPECT_EQ(economy.budget().ns, 0);
}

TEST(SpinBudget, StartsAtTheCostOfAWakeUpAndShrinksToNothingWhenIdle) {
  SpinBudget budget(Mode::automatic, kWake);
  EXPECT_EQ(budget.budget(), kWake);
  Duration last = budget.budget();
  int steps = 0;
  for (; budget.budget().ns > 0 && steps < 100; ++steps) {
    budget.idle_ended(kLong, true);
    EXPECT_LT(budget.budget(), last);
    last = budget.budget();
  }
  EXPECT_LT(steps, 10);
  budget.idle_ended(kLong, true);
  EXPECT_EQ(budget.budget().ns, 0);
}

TEST(SpinBudget, GrowsFromNothingUntilItCatchesTheEvents) {
  SpinBudget budget(Mode::automatic, kWake);
  while (budget.budget().ns > 0) budget.idle_ended(kLong, true);
  int steps = 0;
  while (budget.budget() < kShort && ++steps < 100) budget.idle_ended(kShort, true);
  EXPECT_LT(steps, 10);
  // Caught while polling: that's what it is for.
  const Duration right = budget.budget();
  for (int i = 0; i < 100; ++i) budget.idle_ended(kShort, false);
  EXPECT_EQ(budget.budget(), right);
  // However often: never beyond the most.
  for (int i = 0; i < 100; ++i) budget.idle_ended(budget.max(), true);
  EXPECT_LE(budget.budget(), budget.max());
}

TEST(SpinBudget, PreemptionEndsPollingForAWhile) {
  SpinBudget budget(Mode::automatic, kWake);
  budget.preempted();
  EXPECT_EQ(budget.budget().ns, 0);
  budget.idle_ended(kShort, true);
  EXPECT_EQ(budget.budget().ns, 0);  // not yet
  int sleeps = 0;
  while (budget.budget().ns == 0 && ++sleeps < 100) budget.idle_ended(kShort, true);
  EXPECT_LT(sleeps, 100);
}

TEST(SpinBudget, SettingAModeStartsAfresh) {
  SpinBudget budget(Mode::automatic, kWake);
  budget.set_mode(Mode::performance);
  EXPECT_EQ(budget.mode(), Mode::performance);
  EXPECT_EQ(budget.budget().ns, INT64_MAX);
  budget.set_mode(Mode::automatic);
  EXPECT_EQ(budget.budget(), kWake);
}

}  // namespace
}  // namespace cairn
