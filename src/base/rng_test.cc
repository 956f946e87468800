#include "base/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/time.h"

namespace cairn {
namespace {

TEST(SeededRng, RepeatsItselfOnEveryMachine) {
  SeededRng a(42), b(42), c(43);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(SeededRng(42).next(), c.next());
  // xoshiro256** from SplitMix64(42): recorded once. Seeds in bug reports must keep their meaning.
  SeededRng fixed(42);
  EXPECT_EQ(fixed.next(), 1546998764402558742u);
  EXPECT_EQ(fixed.next(), 6990951692964543102u);
}

TEST(Rng, BelowIsUniformAndInBounds) {
  SeededRng rng(7);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts[rng.below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rng.below(1), 0u);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(rng.below(UINT64_MAX), UINT64_MAX);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) hits += rng.chance(1, 4) ? 1 : 0;
  EXPECT_NEAR(hits, 2500, 250);
}

TEST(Rng, FillsEveryLength) {
  SystemRng system;
  for (size_t size = 0; size < 40; ++size) {
    SeededRng rng(1);
    std::vector<std::byte> bytes(size + 1, std::byte{0x55});
    rng.fill(std::span(bytes).first(size));
    EXPECT_EQ(bytes.back(), std::byte{0x55});
    system.fill(std::span(bytes).first(size));
    EXPECT_EQ(bytes.back(), std::byte{0x55});
  }
  EXPECT_NE(system.next(), system.next());
}

TEST(Time, DeadlinesSaturate) {
  EXPECT_EQ(Time::never() + seconds(1), Time::never());
  EXPECT_EQ(Time{1} + Duration{INT64_MAX}, Time::never());
  EXPECT_EQ((Time{5} + nanoseconds(-3)).ns, 2);
  EXPECT_EQ(milliseconds(3).us(), 3000);
  EXPECT_EQ((seconds(2) - milliseconds(500)).seconds(), 1.5);
  const SystemClock clock;
  const Time a = clock.now();
  EXPECT_LE(a, clock.now());
}

}  // namespace
}  // namespace cairn
