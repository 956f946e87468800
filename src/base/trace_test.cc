#include "base/trace.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn {
namespace {

const std::string kGood = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(Trace, ReadsATraceparent) {
  const auto trace = Trace::from_traceparent(kGood);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->id.to_string(), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(trace->span, (std::array<uint8_t, 8>{0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31}));
  // A later version may say more.
  EXPECT_EQ(Trace::from_traceparent("01" + kGood.substr(2) + "-more"), trace);
}

TEST(Trace, TakesNothingElseForOne) {
  for (size_t i = 0; i < kGood.size(); ++i) {
    std::string bad = kGood;
    bad[i] = 'G';
    EXPECT_FALSE(Trace::from_traceparent(bad)) << bad;
    EXPECT_FALSE(Trace::from_traceparent(kGood.substr(0, i))) << i;
  }
  EXPECT_FALSE(Trace::from_traceparent(kGood + "-more"));
  EXPECT_FALSE(Trace::from_traceparent("01" + kGood.substr(2) + "more"));
  EXPECT_FALSE(Trace::from_traceparent("ff" + kGood.substr(2)));
  EXPECT_FALSE(Trace::from_traceparent("00-" + std::string(32, '0') + kGood.substr(35)));
  EXPECT_FALSE(Trace::from_traceparent(kGood.substr(0, 36) + std::string(16, '0') + "-01"));
  EXPECT_FALSE(Trace::from_traceparent("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"));
}

}  // namespace
}  // namespace cairn
