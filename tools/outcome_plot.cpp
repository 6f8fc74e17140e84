#include "tools/outcome_plot.hpp"

#include "tools/page_head.hpp"
#include "tools/svg_chart.hpp"
#include "tools/svg_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace shoal::tools {

namespace {

constexpr int panel_width = 900, panel_height = 470;

chart chart_of(const scenarios::outcome_chart::panel& panel, double least) {
  std::size_t rounds = 1;
  for (const auto& c : panel.curves)
    rounds = std::max(rounds, c.values.size() - std::min<std::size_t>(1, c.values.size()));
  const auto decades = static_cast<int>(std::ceil(-std::log10(least)));
  chart out;
  out.title = panel.title;
  out.width = panel_width;
  out.height = panel_height;
  out.legend_width = 200;
  out.x = {"rounds", 0, static_cast<double>(rounds), false, {}};
  for (const double t : round_ticks(0, static_cast<double>(rounds), 10))
    if (t == std::round(t)) out.x.ticks.push_back({t, fmt::format("{:.0f}", t)});
  out.y = {"distortion, of the initial one", std::pow(10.0, -decades), 1, true, {}};
  for (int d = 0; d <= decades; ++d)
    out.y.ticks.push_back({std::pow(10.0, -d), fmt::format("1e-{}", d)});
  for (const auto& c : panel.curves) {
    chart_curve curve{c.name,
                      {},
                      c.dashed ? chart_line::dashed : chart_line::solid,
                      !c.dashed && rounds <= 60,
                      c.colour};
    for (std::size_t t = 0; t < c.values.size(); ++t)
      curve.points.push_back({static_cast<double>(t), c.values[t], {}, {}});
    out.curves.push_back(std::move(curve));
  }
  return out;
}

} // namespace

std::string outcome_svg(const scenarios::outcome_chart& chart) {
  const auto& panels = chart.panels;
  auto out = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
                         "font-family=\"sans-serif\" font-size=\"13\">\n",
                         panel_width,
                         panel_height * static_cast<int>(std::max<std::size_t>(1, panels.size())));
  for (std::size_t i = 0; i < panels.size(); ++i)
    out += fmt::format("<g transform=\"translate(0 {})\">\n{}</g>\n",
                       panel_height * static_cast<int>(i),
                       chart_svg(chart_of(panels[i], chart.least)));
  return out + "</svg>\n";
}

namespace {

/// Text with its lines, which svg_text() joins.
std::string lines_html(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    out += svg_text(std::string_view(text).substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return out;
}

} // namespace

std::string outcome_page(const std::string& title, const std::string& printed,
                         const scenarios::program_outcome& outcome, const std::string& command) {
  const auto name = svg_text(title);
  auto out = page_head(name) + "<h1>" + name + "</h1>\n";
  for (const auto& error : outcome.errors) out += "<p><b>" + svg_text(error) + "</b></p>\n";
  for (const auto& [file, chart] : outcome.charts)
    out += "<figure>" + outcome_svg(chart) + "</figure>\n";
  out += "<h2>Figures</h2>\n<pre>" + lines_html(printed) + lines_html(outcome.closing) + "</pre>\n";
  return out + "<p><code>" + svg_text(command) + "</code></p>\n</body>\n</html>\n";
}

} // namespace shoal::tools
