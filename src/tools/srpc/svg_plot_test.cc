#include "tools/srpc/svg_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn::srpc::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SvgPlot, PutsEachPointWhereItBelongs) {
  const std::string svg =
      draw_svg({"Latency", "depth", "us", {{"tcp", {{1, 10}, {2, 20}, {4, 100}}}, {"shm", {{1, 5}, {4, 50}}}}});
  // 490 x 330 from (80, 50); y from 0 to 100.
  EXPECT_THAT(svg, HasSubstr("points=\"80.0,347.0 325.0,314.0 570.0,50.0 \""));
  EXPECT_THAT(svg, HasSubstr("points=\"80.0,363.5 570.0,215.0 \""));
  for (const char* word : {">Latency<", ">depth<", ">us<", ">tcp<", ">shm<", ">100<", ">20<", ">4<"}) {
    EXPECT_THAT(svg, HasSubstr(word));
  }
}

TEST(SvgPlot, DrawsOnePointAndNone) {
  EXPECT_THAT(draw_svg({"t", "x", "y", {{"one", {{8, 3}}}}}), HasSubstr("<circle cx=\"325.0\""));
  EXPECT_THAT(draw_svg({"t", "x", "y", {{"zero", {{8, 0}}}}}), Not(HasSubstr("nan")));
  EXPECT_THAT(draw_svg({"t", "x", "y", {}}), HasSubstr("</svg>"));
}

TEST(SvgPlot, EscapesText) {
  EXPECT_THAT(draw_svg({"a<b & \"c\"", "", "", {}}), HasSubstr(">a&lt;b &amp; &quot;c&quot;<"));
}

TEST(SvgPlot, ShortensLargeNumbers) {
  const std::string svg = draw_svg({"t", "x", "y", {{"rate", {{1, 1'900'000}, {2, 400'000}}}}});
  EXPECT_THAT(svg, HasSubstr(">2M<"));
  EXPECT_THAT(svg, HasSubstr(">500k<"));
}

TEST(SvgPlot, ALogarithmicAxisHasAPowerOfTenALine) {
  const std::string svg = draw_svg({.title = "t",
                                    .x_label = "x",
                                    .y_label = "y",
                                    .series = {{"s", {{1, 3}, {10, 100}, {100, 2500}}}},
                                    .logarithmic = true});
  for (const char* label : {">1<", ">10<", ">100<", ">1000<", ">10k<"}) EXPECT_NE(svg.find(label), std::string::npos);
  EXPECT_EQ(svg.find(">0<"), std::string::npos);
  // 100 is half way between 1 and 10000.
  EXPECT_NE(svg.find("cy=\"215.0\""), std::string::npos) << svg;
}

}  // namespace
}  // namespace cairn::srpc::tools
