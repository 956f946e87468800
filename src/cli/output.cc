#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "base/assert.h"

namespace cairn::cli {
namespace {

std::string_view escape_of(Tone tone) {
  switch (tone) {
    case Tone::plain:
      return "";
    case Tone::strong:
      return "\033[1m";
    case Tone::faint:
      return "\033[2m";
    case Tone::good:
      return "\033[32m";
    case Tone::warning:
      return "\033[33m";
    case Tone::bad:
      return "\033[31m";
  }
  return "";
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Style Style::for_standard_output() {
  return Style(::isatty(STDOUT_FILENO) == 1 && environment("NO_COLOR").empty() && environment("TERM") != "dumb");
}

std::string Style::operator()(Tone tone, std::string_view text) const {
  const auto escape = escape_of(tone);
  if (!colours_ || escape.empty()) return std::string(text);
  return fmt::format("{}{}\033[0m", escape, text);
}

void Table::add(std::vector<Cell> row) {
  ASSERT(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

std::string Table::render(const Style& style) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = width_of(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, width_of(row[i].text));
    widths.push_back(width);
  }
  std::string out;
  const auto append = [&](size_t column, const std::string& text, Tone tone) {
    const std::string padding(widths[column] - width_of(text), ' ');
    const bool last = column + 1 == columns_.size();
    if (columns_[column].align == Align::right) {
      out += padding + style(tone, text);
    } else {
      // No spaces at the end of a line.
      out += style(tone, text) + (last ? "" : padding);
    }
    out += last ? "\n" : "  ";
  };
  for (size_t i = 0; i < columns_.size(); ++i) append(i, columns_[i].title, Tone::faint);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) append(i, row[i].text, row[i].tone);
  }
  return out;
}

size_t width_of(std::string_view utf8) {
  return static_cast<size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string bar(uint64_t used, uint64_t total, size_t width) {
  const double share = total == 0 ? 0 : std::min(1.0, static_cast<double>(used) / static_cast<double>(total));
  auto filled = static_cast<size_t>(share * static_cast<double>(width) + 0.5);
  if (used > 0 && filled == 0) filled = 1;
  return fmt::format("[{}{}] {:3.0f} %", std::string(filled, '#'), std::string(width - filled, '.'), share * 100);
}

std::string local_time(int64_t unix_ns) {
  const auto when = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm broken_down{};
  if (::localtime_r(&when, &broken_down) == nullptr) return "";
  char text[32];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &broken_down);
  return {text, size};
}

}  // namespace cairn::cli
