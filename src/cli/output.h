// Text for people: tables, bars, colours.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::cli {

enum class Tone { plain, strong, faint, good, warning, bad };

// Colours when they are wanted: a terminal, TERM isn't "dumb", and NO_COLOR (no-color.org) is unset or empty.
class Style {
 public:
  explicit Style(bool colours) : colours_(colours) {}
  static Style for_standard_output();

  std::string operator()(Tone tone, std::string_view text) const;
  bool colours() const { return colours_; }

 private:
  bool colours_;
};

// Columns wide enough for their cells, two spaces apart, no lines between.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };
  struct Cell {
    // NOLINTNEXTLINE(google-explicit-constructor): rows are written as lists of texts
    Cell(std::string content) : text(std::move(content)) {}
    Cell(std::string content, Tone cell_tone) : text(std::move(content)), tone(cell_tone) {}
    std::string text;
    Tone tone = Tone::plain;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row);
  std::string render(const Style& style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// Code points, which for what we print is the width on the screen.
size_t width_of(std::string_view utf8);
// "[######......]  52 %" of `width` characters between the brackets; a total of 0 is empty.
std::string bar(uint64_t used, uint64_t total, size_t width);
// "2026-11-30 08:12" in the local time zone.
std::string local_time(int64_t unix_ns);

}  // namespace cairn::cli
