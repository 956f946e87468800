#include "gateway/http/date.h"

#include <gtest/gtest.h>

namespace cairn::http {
namespace {

// The example of RFC 9110 section 5.6.7, in its three spellings.
TEST(HttpDate, ReadsAllThreeFormats) {
  for (const char* text :
       {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"}) {
    EXPECT_EQ(parse_http_date(text), 784111777) << text;
  }
  EXPECT_EQ(format_http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST(HttpDate, RefusesEverythingElse) {
  for (const char* text :
       {"", "yesterday", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 46 Nov 1994 08:49:37 GMT",
        "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 28:49:37 GMT", "784111777"}) {
    EXPECT_FALSE(parse_http_date(text)) << text;
  }
}

TEST(HttpDate, GoesThereAndBack) {
  for (int64_t t = -4'000'000'000; t < 8'000'000'000; t += 86'399 * 977) {
    EXPECT_EQ(parse_http_date(format_http_date(t)), t);
  }
  EXPECT_EQ(to_civil(951'782'400).day, 29);  // 2000-02-29
}

class StandingClock final : public WallClock {
 public:
  int64_t unix_ns() const override { return seconds * 1'000'000'000; }
  int64_t seconds = 784111777;
};

// A request that lasts longer than a second still holds the view it got when it began.
TEST(DateCache, ItsViewOutlivesTheSecond) {
  StandingClock clock;
  DateCache cache(clock);
  const std::string_view held = cache.now();
  EXPECT_EQ(held, "Sun, 06 Nov 1994 08:49:37 GMT");
  clock.seconds += 2;
  EXPECT_EQ(cache.now(), "Sun, 06 Nov 1994 08:49:39 GMT");
  EXPECT_EQ(held, "Sun, 06 Nov 1994 08:49:39 GMT");
}

}  // namespace
}  // namespace cairn::http
