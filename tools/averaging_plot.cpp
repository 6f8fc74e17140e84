#include "tools/averaging_plot.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/svg_text.hpp"

namespace shoal::tools {

namespace {

constexpr int panel_width = 900, panel_height = 470;

std::string panel_svg(const plot_panel& panel, double least) {
  const auto& curves = panel.curves;
  // Distinguishable without colour vision, too (Okabe and Ito).
  static constexpr const char* colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"};
  constexpr double left = 70, top = 44, width = 620, height = 360;
  std::size_t rounds = 1;
  for (const auto& c : curves) rounds = std::max(rounds, c.values.size() - std::min<std::size_t>(1, c.values.size()));
  const double decades = std::ceil(-std::log10(least));
  const auto x = [&](double t) { return left + width * t / static_cast<double>(rounds); };
  const auto y = [&](double v) { return top + height * std::min(1.0, std::max(0.0, -std::log10(std::max(v, least)) / decades)); };
  std::string out = fmt::format(
      "<rect width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>\n<text x=\"{}\" y=\"24\" font-size=\"16\">{}</text>\n", panel_width, panel_height, left, svg_text(panel.title));
  for (int d = 0; d <= static_cast<int>(decades); ++d) {
    const double at = y(std::pow(10.0, -d));
    out += fmt::format("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">1e-{}</text>\n",
                       left, at, left + width, at, left - 8, at + 4, d);
  }
  const std::size_t step = std::max<std::size_t>(1, (rounds + 9) / 10);
  for (std::size_t t = 0; t <= rounds; t += step)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x(static_cast<double>(t)), top + height + 20, t);
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">rounds</text>\n", left + width / 2, top + height + 42);
  out += fmt::format("<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">distortion, of the initial one</text>\n", top + height / 2);
  double legend = top + 8;
  for (const auto& c : curves) {
    std::string points;
    for (std::size_t t = 0; t < c.values.size(); ++t)
      points += fmt::format("{:.1f},{:.1f} ", x(static_cast<double>(t)), y(c.values[t]));
    const auto* colour = colours[c.colour % std::size(colours)];
    const auto dash = c.dashed ? " stroke-dasharray=\"5 4\"" : "";
    out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n", points, colour, c.dashed ? 1.5 : 2.2, dash);
    if (!c.dashed)
      for (std::size_t t = 0; t < c.values.size() && rounds <= 60; ++t)
        out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\" fill=\"{}\"/>\n", x(static_cast<double>(t)), y(c.values[t]), colour);
    out += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"2\"{}/>\n<text x=\"{}\" y=\"{}\">{}</text>\n",
                       left + width + 12, legend, left + width + 40, legend, colour, dash, left + width + 46, legend + 4, svg_text(c.name));
    legend += 20;
  }
  return out;
}

}  // namespace

std::string averaging_svg(const std::vector<plot_panel>& panels, double least) {
  auto out = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"13\">\n",
                         panel_width, panel_height * static_cast<int>(std::max<std::size_t>(1, panels.size())));
  for (std::size_t i = 0; i < panels.size(); ++i)
    out += fmt::format("<g transform=\"translate(0 {})\">\n{}</g>\n", panel_height * static_cast<int>(i), panel_svg(panels[i], least));
  return out + "</svg>\n";
}

}  // namespace shoal::tools
