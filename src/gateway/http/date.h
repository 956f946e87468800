// Dates as HTTP writes them (RFC 9110 section 5.6.7) and as S3 does (ISO 8601).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace cairn::http {

// Calendar fields of UTC; month and day count from 1, weekday from Sunday = 0.
struct CivilTime {
  int year, month, day, hour, minute, second, weekday;
};
CivilTime to_civil(int64_t unix_seconds) noexcept;
// No check of ranges beyond what arithmetic needs; callers check what they parsed.
int64_t from_civil(int year, int month, int day, int hour, int minute, int second) noexcept;

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string format_http_date(int64_t unix_seconds);
// All three formats that recipients must accept: IMF-fixdate, RFC 850 and asctime.
std::optional<int64_t> parse_http_date(std::string_view text);
// "2026-11-30T08:00:00.123Z"
std::string format_iso8601_ms(int64_t unix_ns);
// "20261130T080000Z", the form of x-amz-date; anything else is refused.
std::optional<int64_t> parse_basic_iso8601(std::string_view text);

// The Date header's value, formatted once a second. The view that now() gives stays good for the cache's life and
// always shows the time of the last call: a request holds it for as long as it takes, while others move the time on.
class DateCache {
 public:
  explicit DateCache(const WallClock& clock) : clock_(clock) {}
  std::string_view now();

 private:
  const WallClock& clock_;
  int64_t second_ = -1;
  std::array<char, 29> text_{};  // overwritten in place
};

}  // namespace cairn::http
