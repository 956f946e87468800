#include "gateway/s3/range.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace cairn::s3 {
namespace {

std::string show(std::string_view header, uint64_t size) {
  const auto range = parse_range(header, size);
  if (!range) return std::string(range.error().name());
  return *range ? fmt::format("{}+{}", (*range)->offset, (*range)->length) : "whole";
}

TEST(Range, OfTenBytes) {
  const std::pair<const char*, const char*> cases[] = {{"bytes=0-9", "0+10"},
                                                       {"bytes=5-15", "5+5"},
                                                       {"bytes=3-0", "whole"},
                                                       {"bytes=abc", "whole"},
                                                       {"bytes=10-", "InvalidRange"},
                                                       {"bytes=9-", "9+1"},
                                                       {"bytes=-3", "7+3"},
                                                       {"bytes=-20", "0+10"},
                                                       {"bytes=-0", "InvalidRange"},
                                                       {"bytes=0-1,5-6", "whole"},
                                                       {"bytes=-", "whole"},
                                                       {"bytes=", "whole"},
                                                       {"items=0-1", "whole"},
                                                       {"bytes=0-0", "0+1"},
                                                       {"bytes= 2-3 ", "2+2"},
                                                       {"bytes=2--3", "whole"},
                                                       {"bytes=+1-2", "whole"},
                                                       {"bytes=0-99999999999999999999", "0+10"},
                                                       {"bytes=99999999999999999999-", "InvalidRange"},
                                                       {"bytes=1-2x", "whole"}};
  for (const auto& [header, expected] : cases) EXPECT_EQ(show(header, 10), expected) << header;
}

TEST(Range, OfAnEmptyObject) {
  EXPECT_EQ(show("bytes=0-0", 0), "InvalidRange");
  EXPECT_EQ(show("bytes=-1", 0), "InvalidRange");
  EXPECT_EQ(show("bytes=0-", 0), "InvalidRange");
}

TEST(Range, CopySource) {
  const auto ok = parse_copy_range("bytes=2-9", 10);
  ASSERT_TRUE(ok.has_value());
  EXPECT_EQ(ok->offset, 2u);
  EXPECT_EQ(ok->length, 8u);
  for (const char* bad : {"bytes=5-15", "bytes=x", "bytes=-3", "bytes=3-", "bytes=3-0", "0-1", ""}) {
    const auto range = parse_copy_range(bad, 10);
    ASSERT_FALSE(range.has_value()) << bad;
    EXPECT_EQ(range.error().code(), Code::InvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace cairn::s3
