// A line plot as an SVG document: values over powers of two (queue depths) or rates.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cairn::srpc::tools {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x > 0, ascending
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  bool logarithmic = false;  // y, from the power of ten below the least value on; values > 0
};

// x is logarithmic, y starts at 0 unless it is logarithmic, too. Stands alone: no script, no font, no style from
// elsewhere.
std::string draw_svg(const Plot& plot);

}  // namespace cairn::srpc::tools
