#include "base/units.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Units, SizesInEverySpelling) {
  struct Case {
    const char* text;
    uint64_t bytes;
  };
  const Case cases[] = {
      {"0", 0},
      {"4096", 4096},
      {"1B", 1},
      {"64K", 65536},
      {"64k", 65536},
      {"64KiB", 65536},
      {"64 KiB", 65536},
      {"64Ki", 65536},
      {"64kib", 65536},
      {"64KB", 64000},
      {"1.5GiB", 3 << 29},
      {"0.5K", 512},
      {"1T", 1ull << 40},
      {"16383.5PiB", 18446181123756130304ull},
      {"18446744073709551615", UINT64_MAX},
  };
  for (const auto& c : cases) {
    const auto size = parse_size(c.text);
    ASSERT_TRUE(size) << c.text << ": " << size.error().to_string();
    EXPECT_EQ(*size, c.bytes) << c.text;
  }
}

TEST(Units, BadSizesSayWhat) {
  for (const char* text : {"", "x", "-1", "1X", "1.G", ".5G", "1,5G", "1GiBB", "16384PiB", "18446744073709551616",
                           "1 2", "1.0000000001G", "0x10"}) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.code(), Errc::invalid_argument);
    EXPECT_NE(size.error().message().find(std::string("'") + text + "'"), std::string::npos) << size.error().message();
  }
}

TEST(Units, ExactTextsComeBack) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{1024}, uint64_t{1025},
                               uint64_t{3} << 29, uint64_t{1} << 40, UINT64_MAX}) {
    EXPECT_EQ(*parse_size(format_size_exact(bytes)), bytes);
  }
  EXPECT_EQ(format_size_exact(3u << 29), "1536MiB");
  for (const int64_t ns :
       {int64_t{0}, int64_t{1}, int64_t{1500}, int64_t{90'000'000'000}, int64_t{86'400'000'000'000}, INT64_MAX}) {
    EXPECT_EQ(parse_duration(format_duration_exact({ns}))->ns, ns);
  }
  EXPECT_EQ(format_duration_exact(seconds(90)), "90s");
}

TEST(Units, SizesForEyes) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(1024), "1.00 KiB");
  EXPECT_EQ(format_size(1536), "1.50 KiB");
  EXPECT_EQ(format_size(10240), "10.0 KiB");
  EXPECT_EQ(format_size(uint64_t{250} << 30), "250 GiB");
  EXPECT_EQ(format_size(UINT64_MAX), "16384 PiB");
}

TEST(Units, DurationsNeedAUnit) {
  EXPECT_EQ(parse_duration("250ms")->ns, 250'000'000);
  EXPECT_EQ(parse_duration("1.5s")->ns, 1'500'000'000);
  EXPECT_EQ(parse_duration("2d")->ns, 2 * 86'400'000'000'000);
  EXPECT_EQ(parse_duration("0")->ns, 0);
  for (const char* text : {"30", "", "s", "1S", "-1s", "1 s 2", "107000d"}) EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Units, DurationsForEyes) {
  EXPECT_EQ(format_duration(seconds(3 * 86400 + 4 * 3600 + 59)), "3d 4h");
  EXPECT_EQ(format_duration(seconds(725)), "12m 5s");
  EXPECT_EQ(format_duration(seconds(3600)), "1h");
  EXPECT_EQ(format_duration(milliseconds(340)), "340ms");
  EXPECT_EQ(format_duration({0}), "0s");
}

}  // namespace
}  // namespace cairn
