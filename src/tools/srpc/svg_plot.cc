#include "tools/srpc/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

namespace cairn::srpc::tools {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 440;
constexpr double kLeft = 80;
constexpr double kRight = 190;  // the legend
constexpr double kTop = 50;
constexpr double kBottom = 60;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr double kPlotHeight = kHeight - kTop - kBottom;

// Told apart also by those who don't see red and green alike (Okabe and Ito).
constexpr std::array<std::string_view, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#e69f00", "#56b4e9", "#000000"};

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// 1, 2 or 5 times a power of ten, so that at most about six lines cross the plot.
double step_for(double largest) {
  const double rough = largest / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string text(double x, double y, std::string_view anchor, std::string_view what, std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     escape(what));
}

std::string number(double value) {
  if (value >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", value);
}

// From values to places.
class Scale {
 public:
  explicit Scale(const Plot& plot) {
    for (const Series& series : plot.series) {
      for (const auto& [x, y] : series.points) {
        places_.insert(x);
        largest_ = std::max(largest_, y);
        if (y > 0) least_ = std::min(least_, y);
      }
    }
    if (largest_ <= 0) largest_ = 1;
    if (plot.logarithmic) {
      bottom_ = std::pow(10, std::floor(std::log10(std::min(least_, largest_))));
      top_ = std::pow(10, std::ceil(std::log10(largest_)));
      if (top_ <= bottom_) top_ = 10 * bottom_;
      for (double line = bottom_; line <= top_ * 1.001; line *= 10) lines_.push_back(line);
      return;
    }
    step_ = step_for(largest_);
    top_ = std::ceil(largest_ / step_) * step_;
    // Counted, not added up: the top line would be lost to rounding.
    const auto count = static_cast<int>(std::lround(top_ / step_));
    for (int i = 0; i <= count; ++i) lines_.push_back(i * step_);
  }
  const std::set<double>& places() const { return places_; }
  const std::vector<double>& lines() const { return lines_; }

  double x(double value) const {
    if (places_.size() < 2) return kLeft + kPlotWidth / 2;
    const double from = std::log2(*places_.begin());
    const double to = std::log2(*places_.rbegin());
    return kLeft + (std::log2(value) - from) / (to - from) * kPlotWidth;
  }
  double y(double value) const {
    if (bottom_ == 0) return kTop + kPlotHeight * (1 - value / top_);
    return kTop + kPlotHeight * (1 - std::log(std::max(value, bottom_) / bottom_) / std::log(top_ / bottom_));
  }

 private:
  std::set<double> places_;
  double largest_ = 0;
  double least_ = std::numeric_limits<double>::infinity();
  double step_ = 1;
  double bottom_ = 0;  // > 0: logarithmic
  double top_ = 1;
  std::vector<double> lines_;
};

std::string draw_axes(const Plot& plot, const Scale& scale) {
  std::string out;
  for (const double value : scale.lines()) {
    out += fmt::format("<line x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\"/>\n", kLeft,
                       kLeft + kPlotWidth, scale.y(value), value == scale.lines().front() ? "#333" : "#ddd");
    out += text(kLeft - 8, scale.y(value) + 4, "end", number(value));
  }
  for (const double place : scale.places()) {
    out += text(scale.x(place), kTop + kPlotHeight + 20, "middle", number(place));
  }
  const double middle = kTop + kPlotHeight / 2;
  out += text(kLeft + kPlotWidth / 2, kHeight - 16, "middle", plot.x_label);
  out += text(20, middle, "middle", plot.y_label, fmt::format(" transform=\"rotate(-90 20 {:.1f})\"", middle));
  out += text(kLeft, 28, "start", plot.title, " font-size=\"16\" font-weight=\"bold\"");
  return out;
}

std::string draw_series(const Series& series, size_t index, const Scale& scale) {
  const std::string_view colour = kColours[index % kColours.size()];
  std::string out;
  std::string line;
  for (const auto& [x, y] : series.points) {
    line += fmt::format("{:.1f},{:.1f} ", scale.x(x), scale.y(y));
    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", scale.x(x), scale.y(y), colour);
  }
  out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", line, colour);
  const double y = kTop + 10 + 20 * static_cast<double>(index);
  const double x = kLeft + kPlotWidth + 16;
  out += fmt::format(
      "<line x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{3:.1f}\" y2=\"{3:.1f}\" stroke=\"{2}\" stroke-width=\"2\"/>\n", x,
      x + 20, colour, y);
  out += text(x + 26, y + 4, "start", series.name);
  return out;
}

}  // namespace

std::string draw_svg(const Plot& plot) {
  const Scale scale(plot);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0:g}\" height=\"{1:g}\" fill=\"#fff\"/>\n",
      kWidth, kHeight);
  out += draw_axes(plot, scale);
  for (size_t i = 0; i < plot.series.size(); ++i) out += draw_series(plot.series[i], i, scale);
  return out + "</svg>\n";
}

}  // namespace cairn::srpc::tools
