#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace cairn {
namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};

constexpr uint64_t kKi = 1024;
constexpr uint64_t kK = 1000;

// Descending, so that the formatters take the first that fits. The first spelling of a factor is the one printed.
constexpr std::array<Unit, 6> kSizeUnits = {{{"PiB", kKi* kKi* kKi* kKi* kKi},
                                             {"TiB", kKi* kKi* kKi* kKi},
                                             {"GiB", kKi* kKi* kKi},
                                             {"MiB", kKi* kKi},
                                             {"KiB", kKi},
                                             {"B", 1}}};
constexpr std::array<Unit, 5> kDecimalSizeUnits = {
    {{"PB", kK* kK* kK* kK* kK}, {"TB", kK* kK* kK* kK}, {"GB", kK* kK* kK}, {"MB", kK* kK}, {"KB", kK}}};
constexpr std::array<Unit, 7> kTimeUnits = {{{"d", 86'400'000'000'000},
                                             {"h", 3'600'000'000'000},
                                             {"m", 60'000'000'000},
                                             {"s", 1'000'000'000},
                                             {"ms", 1'000'000},
                                             {"us", 1'000},
                                             {"ns", 1}}};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

std::optional<uint64_t> size_factor(std::string_view suffix) {
  if (suffix.empty()) return 1;
  for (const auto& unit : kSizeUnits) {
    // "KiB" is also spelled "K" and "Ki".
    if (equal_ignoring_case(suffix, unit.name)) return unit.factor;
    if (unit.factor > 1 && equal_ignoring_case(suffix, unit.name.substr(0, 1))) return unit.factor;
    if (unit.factor > 1 && equal_ignoring_case(suffix, unit.name.substr(0, 2))) return unit.factor;
  }
  for (const auto& unit : kDecimalSizeUnits) {
    if (equal_ignoring_case(suffix, unit.name)) return unit.factor;
  }
  return std::nullopt;
}

std::optional<uint64_t> time_factor(std::string_view suffix) {
  for (const auto& unit : kTimeUnits) {
    if (suffix == unit.name) return unit.factor;
  }
  return std::nullopt;
}

struct Quantity {
  std::string_view integer;   // digits before the point
  std::string_view fraction;  // digits behind it
  std::string_view suffix;
};

std::optional<Quantity> split(std::string_view text) {
  const auto digits_from = [&](size_t at) {
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at;
  };
  Quantity q;
  size_t at = digits_from(0);
  q.integer = text.substr(0, at);
  if (q.integer.empty()) return std::nullopt;
  if (at < text.size() && text[at] == '.') {
    const size_t end = digits_from(at + 1);
    q.fraction = text.substr(at + 1, end - at - 1);
    if (q.fraction.empty() || q.fraction.size() > 9) return std::nullopt;
    at = end;
  }
  while (at < text.size() && text[at] == ' ') ++at;
  q.suffix = text.substr(at);
  return q;
}

// integer.fraction * factor, rounded down; none when it doesn't fit.
std::optional<uint64_t> scale(const Quantity& q, uint64_t factor) {
  uint64_t whole = 0;
  const auto [end, error] = std::from_chars(q.integer.data(), q.integer.data() + q.integer.size(), whole);
  if (error != std::errc() || end != q.integer.data() + q.integer.size()) return std::nullopt;
  uint64_t value = 0;
  if (__builtin_mul_overflow(whole, factor, &value)) return std::nullopt;
  if (!q.fraction.empty()) {
    uint64_t digits = 0;
    uint64_t denominator = 1;
    for (const char c : q.fraction) {
      digits = digits * 10 + static_cast<uint64_t>(c - '0');
      denominator *= 10;
    }
    const auto part = static_cast<uint64_t>(static_cast<unsigned __int128>(digits) * factor / denominator);
    if (__builtin_add_overflow(value, part, &value)) return std::nullopt;
  }
  return value;
}

template <typename Units>
std::string exact(uint64_t value, const Units& units) {
  for (const auto& unit : units) {
    if (value >= unit.factor && value % unit.factor == 0) return fmt::format("{}{}", value / unit.factor, unit.name);
  }
  return fmt::format("{}{}", value, units.back().name);
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  const auto quantity = split(text);
  const auto factor = quantity ? size_factor(quantity->suffix) : std::nullopt;
  if (!factor) {
    return Error(Errc::invalid_argument,
                 fmt::format("'{}' is not a size; write for example 4096, 64KiB or 1.5TiB", text));
  }
  const auto value = scale(*quantity, *factor);
  if (!value) return Error(Errc::invalid_argument, fmt::format("'{}' is larger than 16 EiB", text));
  return *value;
}

std::string format_size_exact(uint64_t bytes) { return exact(bytes, kSizeUnits); }

std::string format_size(uint64_t bytes) {
  for (const auto& unit : kSizeUnits) {
    if (bytes < unit.factor || unit.factor == 1) continue;
    const double value = static_cast<double>(bytes) / static_cast<double>(unit.factor);
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, decimals, unit.name);
  }
  return fmt::format("{} B", bytes);
}

Result<Duration> parse_duration(std::string_view text) {
  if (text == "0") return Duration{0};
  const auto quantity = split(text);
  const auto factor = quantity ? time_factor(quantity->suffix) : std::nullopt;
  if (!factor) {
    return Error(Errc::invalid_argument,
                 fmt::format("'{}' is not a duration; write for example 250ms, 30s, 5m or 12h", text));
  }
  const auto value = scale(*quantity, *factor);
  if (!value || *value > INT64_MAX) return Error(Errc::invalid_argument, fmt::format("'{}' is too long", text));
  return Duration{static_cast<int64_t>(*value)};
}

std::string format_duration_exact(Duration duration) {
  if (duration.ns == 0) return "0";
  const bool negative = duration.ns < 0;
  const uint64_t ns = negative ? uint64_t{0} - static_cast<uint64_t>(duration.ns) : static_cast<uint64_t>(duration.ns);
  return (negative ? "-" : "") + exact(ns, kTimeUnits);
}

std::string format_duration(Duration duration) {
  if (duration.ns <= 0) return "0s";
  auto rest = static_cast<uint64_t>(duration.ns);
  for (size_t i = 0; i < kTimeUnits.size(); ++i) {
    const auto& unit = kTimeUnits[i];
    if (rest < unit.factor) continue;
    std::string text = fmt::format("{}{}", rest / unit.factor, unit.name);
    rest %= unit.factor;
    // Below a minute one unit says enough.
    if (unit.factor >= 60'000'000'000 && rest >= kTimeUnits[i + 1].factor) {
      text += fmt::format(" {}{}", rest / kTimeUnits[i + 1].factor, kTimeUnits[i + 1].name);
    }
    return text;
  }
  return "0s";
}

}  // namespace cairn
