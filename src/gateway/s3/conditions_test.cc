#include "gateway/s3/conditions.h"

#include <gtest/gtest.h>

namespace cairn::s3 {
namespace {

constexpr int64_t kModified = 1369353600'500'000'000;  // half a second past 2013-05-24T00:00:00Z
constexpr std::string_view kThen = "Fri, 24 May 2013 00:00:00 GMT";
constexpr std::string_view kBefore = "Thu, 23 May 2013 00:00:00 GMT";
constexpr std::string_view kAfter = "Sat, 25 May 2013 00:00:00 GMT";

using Fields = std::vector<std::pair<std::string_view, std::string_view>>;

http::Headers headers_of(const Fields& fields) {
  http::Headers headers;
  for (const auto& [name, value] : fields) headers.add(name, value);
  return headers;
}

Verdict judge(const Fields& fields) {
  const http::Headers headers = headers_of(fields);
  return ReadConditions::of_request(headers).judge("abc", kModified);
}

TEST(Conditions, OneAtATime) {
  const std::pair<Fields, Verdict> cases[] = {
      {{}, Verdict::proceed},
      {{{"If-Match", "\"abc\""}}, Verdict::proceed},
      {{{"If-Match", "abc"}}, Verdict::proceed},
      {{{"If-Match", "*"}}, Verdict::proceed},
      {{{"If-Match", "\"x\", \"abc\""}}, Verdict::proceed},
      {{{"If-Match", "\"x\""}}, Verdict::precondition_failed},
      {{{"If-Match", "W/\"abc\""}}, Verdict::precondition_failed},
      {{{"If-None-Match", "\"abc\""}}, Verdict::not_modified},
      {{{"If-None-Match", "W/\"abc\""}}, Verdict::not_modified},
      {{{"If-None-Match", "*"}}, Verdict::not_modified},
      {{{"If-None-Match", "\"x\""}}, Verdict::proceed},
      {{{"If-Modified-Since", kBefore}}, Verdict::proceed},
      {{{"If-Modified-Since", kThen}}, Verdict::not_modified},
      {{{"If-Modified-Since", "yesterday"}}, Verdict::proceed},
      {{{"If-Unmodified-Since", kBefore}}, Verdict::precondition_failed},
      {{{"If-Unmodified-Since", kThen}}, Verdict::proceed},
  };
  for (const auto& [fields, expected] : cases) {
    EXPECT_EQ(judge(fields), expected) << (fields.empty() ? "" : fields[0].second);
  }
}

TEST(Conditions, EtagsTakePrecedenceOverDates) {
  EXPECT_EQ(judge({{"If-Match", "\"abc\""}, {"If-Unmodified-Since", kBefore}}), Verdict::proceed);
  EXPECT_EQ(judge({{"If-None-Match", "\"abc\""}, {"If-Modified-Since", kBefore}}), Verdict::not_modified);
  EXPECT_EQ(judge({{"If-None-Match", "\"x\""}, {"If-Modified-Since", kAfter}}), Verdict::proceed);
  EXPECT_EQ(judge({{"If-Match", "\"x\""}, {"If-None-Match", "\"abc\""}}), Verdict::precondition_failed);
}

TEST(Conditions, OfWrites) {
  const auto none = write_conditions(headers_of({{"If-None-Match", "*"}}));
  ASSERT_TRUE(none.has_value());
  EXPECT_TRUE(none->if_none_match_any);
  const auto match = write_conditions(headers_of({{"If-Match", "\"abc\""}}));
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->if_match, "abc");
  EXPECT_FALSE(write_conditions(headers_of({{"If-None-Match", "\"abc\""}})).has_value());
  EXPECT_FALSE(write_conditions(headers_of({{"If-None-Match", "*"}, {"If-Match", "x"}})).has_value());
}

TEST(Conditions, IfRange) {
  EXPECT_TRUE(range_applies(headers_of({}), "abc", kModified));
  EXPECT_TRUE(range_applies(headers_of({{"If-Range", "\"abc\""}}), "abc", kModified));
  EXPECT_FALSE(range_applies(headers_of({{"If-Range", "W/\"abc\""}}), "abc", kModified));
  EXPECT_FALSE(range_applies(headers_of({{"If-Range", "\"x\""}}), "abc", kModified));
  EXPECT_TRUE(range_applies(headers_of({{"If-Range", kThen}}), "abc", kModified));
  EXPECT_FALSE(range_applies(headers_of({{"If-Range", kBefore}}), "abc", kModified));
}

}  // namespace
}  // namespace cairn::s3
