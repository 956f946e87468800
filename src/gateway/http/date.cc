#include "gateway/http/date.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/assert.h"

namespace cairn::http {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr int64_t kDaySeconds = 86400;

// Days since 1970-01-01 of the proleptic Gregorian calendar and back, by counting 400-year eras that begin in March.
constexpr int64_t days_from_civil(int64_t year, int month, int day) {
  year -= month <= 2 ? 1 : 0;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

// Reads exactly `digits` digits at `at`.
std::optional<int> number(std::string_view text, size_t at, size_t digits) {
  if (at + digits > text.size()) return std::nullopt;
  int value = 0;
  for (size_t i = at; i < at + digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

std::optional<int> month_number(std::string_view text) {
  for (size_t i = 0; i < kMonths.size(); ++i) {
    if (kMonths[i] == text) return static_cast<int>(i) + 1;
  }
  return std::nullopt;
}

std::optional<int64_t> checked(std::optional<int> year, std::optional<int> month, std::optional<int> day,
                               std::optional<int> hour, std::optional<int> minute, std::optional<int> second) {
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  if (*month < 1 || *month > 12 || *day < 1 || *day > 31 || *hour > 23 || *minute > 59 || *second > 60) {
    return std::nullopt;
  }
  // The 30th of February would come back as a day of March.
  const int64_t midnight = from_civil(*year, *month, *day, 0, 0, 0);
  if (to_civil(midnight).day != *day) return std::nullopt;
  return from_civil(*year, *month, *day, *hour, *minute, *second);
}

// "08:49:37" at `at`.
struct Clock {
  std::optional<int> hour, minute, second;
};
Clock clock_at(std::string_view text, size_t at) {
  if (at + 8 > text.size() || text[at + 2] != ':' || text[at + 5] != ':') return {};
  return {number(text, at, 2), number(text, at + 3, 2), number(text, at + 6, 2)};
}

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::optional<int64_t> parse_imf_fixdate(std::string_view text) {
  if (text.size() != 29 || text.substr(3, 2) != ", " || text.substr(25) != " GMT") return std::nullopt;
  const Clock clock = clock_at(text, 17);
  return checked(number(text, 12, 4), month_number(text.substr(8, 3)), number(text, 5, 2), clock.hour, clock.minute,
                 clock.second);
}

// "Sunday, 06-Nov-94 08:49:37 GMT". RFC 9110: a year more than 50 years ahead means the past century; a fixed pivot
// does for dates of files.
std::optional<int64_t> parse_rfc850(std::string_view text) {
  const size_t comma = text.find(", ");
  if (comma == std::string_view::npos) return std::nullopt;
  text.remove_prefix(comma + 2);
  if (text.size() != 22 || text[2] != '-' || text[6] != '-' || text.substr(18) != " GMT") return std::nullopt;
  auto year = number(text, 7, 2);
  if (year) *year += *year < 70 ? 2000 : 1900;
  const Clock clock = clock_at(text, 10);
  return checked(year, month_number(text.substr(3, 3)), number(text, 0, 2), clock.hour, clock.minute, clock.second);
}

// "Sun Nov  6 08:49:37 1994"
std::optional<int64_t> parse_asctime(std::string_view text) {
  if (text.size() != 24 || text[3] != ' ' || text[7] != ' ' || text[10] != ' ' || text[19] != ' ') return std::nullopt;
  const auto day = text[8] == ' ' ? number(text, 9, 1) : number(text, 8, 2);
  const Clock clock = clock_at(text, 11);
  return checked(number(text, 20, 4), month_number(text.substr(4, 3)), day, clock.hour, clock.minute, clock.second);
}

}  // namespace

CivilTime to_civil(int64_t unix_seconds) noexcept {
  int64_t days = unix_seconds / kDaySeconds;
  int64_t rest = unix_seconds % kDaySeconds;
  if (rest < 0) {
    rest += kDaySeconds;
    --days;
  }
  const int64_t shifted = days + 719468;
  const int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
  const int64_t day_of_era = shifted - era * 146097;
  const int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted_month = (5 * day_of_year + 2) / 153;
  CivilTime civil{};
  civil.day = static_cast<int>(day_of_year - (153 * shifted_month + 2) / 5 + 1);
  civil.month = static_cast<int>(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
  civil.year = static_cast<int>(year_of_era + era * 400 + (civil.month <= 2 ? 1 : 0));
  civil.hour = static_cast<int>(rest / 3600);
  civil.minute = static_cast<int>(rest / 60 % 60);
  civil.second = static_cast<int>(rest % 60);
  civil.weekday = static_cast<int>(((days + 4) % 7 + 7) % 7);  // 1970-01-01 was a Thursday
  return civil;
}

int64_t from_civil(int year, int month, int day, int hour, int minute, int second) noexcept {
  return days_from_civil(year, month, day) * kDaySeconds + hour * 3600 + minute * 60 + second;
}

std::string format_http_date(int64_t unix_seconds) {
  const CivilTime t = to_civil(unix_seconds);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[static_cast<size_t>(t.weekday)], t.day,
                     kMonths[static_cast<size_t>(t.month - 1)], t.year, t.hour, t.minute, t.second);
}

std::optional<int64_t> parse_http_date(std::string_view text) {
  if (const auto time = parse_imf_fixdate(text)) return time;
  if (const auto time = parse_rfc850(text)) return time;
  return parse_asctime(text);
}

std::string format_iso8601_ms(int64_t unix_ns) {
  int64_t ms = unix_ns / 1'000'000;
  const CivilTime t = to_civil(ms / 1000 - (ms % 1000 < 0 ? 1 : 0));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", t.year, t.month, t.day, t.hour, t.minute, t.second,
                     (ms % 1000 + 1000) % 1000);
}

std::optional<int64_t> parse_basic_iso8601(std::string_view text) {
  if (text.size() != 16 || text[8] != 'T' || text[15] != 'Z') return std::nullopt;
  return checked(number(text, 0, 4), number(text, 4, 2), number(text, 6, 2), number(text, 9, 2), number(text, 11, 2),
                 number(text, 13, 2));
}

std::string_view DateCache::now() {
  const int64_t second = clock_.unix_ns() / 1'000'000'000;
  if (second != second_) {
    second_ = second;
    const std::string text = format_http_date(second);
    ASSERT(text.size() == text_.size());
    std::ranges::copy(text, text_.begin());  // cairn-allow(memcpy): a header of 29 bytes
  }
  return {text_.data(), text_.size()};
}

}  // namespace cairn::http
