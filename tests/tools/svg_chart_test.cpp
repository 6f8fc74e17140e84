#include "tools/svg_chart.hpp"

#include <doctest/doctest.h>

using namespace shoal::tools;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Axes whose lengths are round numbers of pixels: 100 wide from x = 54, 100 high from y = 32.
chart plain() {
  chart out;
  out.font_size = 10;
  out.width = 54 + 100 + 12;
  out.height = 32 + 100 + 42;
  out.x = {"x", 0, 10, false, {}};
  out.y = {"", 0, 1, false, {}};
  return out;
}

} // namespace

TEST_CASE("ticks are round and between both ends") {
  CHECK(round_ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(round_ticks(0.13, 0.42, 3).size() == 3);
  CHECK(round_ticks(-1, 1, 4) == std::vector<double>{-1, -0.5, 0, 0.5, 1});
}

TEST_CASE("a band goes there above and back below") {
  auto what = plain();
  what.curves = {{"", {{0, 0.5, 0.25, 0.75}, {10, 0.5, 0, 1}}, chart_line::solid, false, 0}};
  const auto svg = chart_svg(what);
  CHECK(has(svg, "<polygon points=\"54.0,57.0 154.0,32.0 154.0,132.0 54.0,107.0 \""));
  CHECK(has(svg, "<polyline points=\"54.0,82.0 154.0,82.0 \""));
}

TEST_CASE("a point that stands alone has a bar") {
  auto what = plain();
  what.curves = {{"", {{5, 0.5, 0.25, 0.75}}, chart_line::none, true, 1}};
  const auto svg = chart_svg(what);
  CHECK(has(svg, "<line x1=\"104.0\" y1=\"107.0\" x2=\"104.0\" y2=\"57.0\""));
  CHECK(!has(svg, "polygon"));
  CHECK(!has(svg, "polyline"));
}

TEST_CASE(
    "a logarithmic axis has equal ratios at equal distances, and its end for what lies beyond") {
  auto what = plain();
  what.y = {"", 0.01, 1, true, {{0.1, "0.1"}}};
  what.curves = {{"", {{0, 0.1, {}, {}}, {10, 0, {}, {}}}, chart_line::solid, false, 0}};
  CHECK(has(chart_svg(what), "<polyline points=\"54.0,82.0 154.0,132.0 \""));
}

TEST_CASE("texts of ticks do not run into each other, and are no markup") {
  auto what = plain();
  for (int i = 0; i <= 10; ++i)
    what.x.ticks.push_back({static_cast<double>(i), "<" + std::to_string(i) + "00Mbit>"});
  const auto svg = chart_svg(what);
  CHECK(has(svg, "&lt;000Mbit&gt;"));
  CHECK(!has(svg, "100Mbit"));
  CHECK(!has(svg, "<000"));
}
