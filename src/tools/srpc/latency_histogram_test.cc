#include "tools/srpc/latency_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace cairn::srpc::tools {
namespace {

TEST(LatencyHistogram, IsEmptyAtFirst) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.min_ns(), 0);
  EXPECT_EQ(histogram.percentile_ns(0.5), 0);
}

TEST(LatencyHistogram, SmallValuesAreExact) {
  LatencyHistogram histogram;
  for (int64_t ns = 1; ns <= 100; ++ns) histogram.record(ns);
  EXPECT_EQ(histogram.percentile_ns(0.5), 50);
  EXPECT_EQ(histogram.min_ns(), 1);
  EXPECT_EQ(histogram.percentile_ns(0), 1);
  EXPECT_EQ(histogram.percentile_ns(1), 100);
  EXPECT_DOUBLE_EQ(histogram.mean_ns(), 50.5);
}

// Against sorted values, over all magnitudes.
TEST(LatencyHistogram, PercentilesAreWithinTwoPercent) {
  SeededRng rng(1);
  for (int round = 0; round < 20; ++round) {
    LatencyHistogram first;
    LatencyHistogram second;
    std::vector<int64_t> values;
    for (int i = 0; i < 1000; ++i) {
      const auto ns = static_cast<int64_t>(rng.below(uint64_t{1} << (1 + rng.below(39))));
      values.push_back(ns);
      (i % 2 == 0 ? first : second).record(ns);
    }
    first.add(second);
    std::ranges::sort(values);
    ASSERT_EQ(first.count(), values.size());
    for (const double part : {0.01, 0.5, 0.9, 0.99, 0.999}) {
      const auto exact = static_cast<double>(values[static_cast<size_t>(part * 1000) - 1]);
      const auto got = static_cast<double>(first.percentile_ns(part));
      EXPECT_GE(got, exact);
      EXPECT_LE(got, exact * 1.02 + 1) << part;
    }
    EXPECT_EQ(first.min_ns(), values.front());
    EXPECT_EQ(first.max_ns(), values.back());
  }
}

TEST(LatencyHistogram, TakesWhatIsOutOfRange) {
  LatencyHistogram histogram;
  histogram.record(-5);
  histogram.record(INT64_MAX);
  EXPECT_EQ(histogram.count(), 2U);
  EXPECT_EQ(histogram.min_ns(), 0);
  EXPECT_EQ(histogram.max_ns(), INT64_MAX);
}

}  // namespace
}  // namespace cairn::srpc::tools
