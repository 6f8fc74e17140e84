#include "tools/svg_chart.hpp"

#include "tools/svg_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace shoal::tools {

namespace {

/// The share of an axis before `value`, in [0, 1].
double place(const chart_axis& axis, double value) {
  const double share = axis.logarithmic
                           ? (std::log10(std::max(value, axis.from)) - std::log10(axis.from)) /
                                 (std::log10(axis.to) - std::log10(axis.from))
                           : (value - axis.from) / (axis.to - axis.from);
  return std::clamp(share, 0.0, 1.0);
}

/// The width of the texts at a y axis, in ems.
double room_for(const chart_axis& y) {
  std::size_t longest = 0;
  for (const auto& tick : y.ticks) longest = std::max(longest, tick.text.size());
  return std::max(5.4, 0.62 * static_cast<double>(longest) + 1.2);
}

class chart_drawing {
public:
  explicit chart_drawing(const chart& what)
      : what_(what), em_(what.font_size), left_(room_for(what.y) * em_), top_(3.2 * em_),
        width_(what.width - left_ - 1.2 * em_ - what.legend_width),
        height_(what.height - top_ - 4.2 * em_) {}

  std::string all() {
    add(R"(<rect class="back" width="{}" height="{}" fill="#ffffff"/>)", what_.width, what_.height);
    add(R"(<text x="{:.1f}" y="{:.1f}" font-size="{:.1f}">{}</text>)", 0.4 * em_, 1.6 * em_,
        1.15 * em_, svg_text(what_.title));
    y_axis();
    x_axis();
    for (const auto& curve : what_.curves) confidence(curve);
    for (const auto& curve : what_.curves) line(curve);
    if (what_.legend_width > 0) legend();
    return std::move(out_);
  }

private:
  template <class... T>
  void add(fmt::format_string<T...> text, T&&... values) {
    out_ += fmt::format(text, std::forward<T>(values)...) + "\n";
  }
  double x(double value) const { return left_ + width_ * place(what_.x, value); }
  double y(double value) const { return top_ + height_ * (1 - place(what_.y, value)); }

  void y_axis() {
    for (const auto& tick : what_.y.ticks) {
      const double at = y(tick.at);
      add(R"(<line class="grid" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#dddddd"/>)",
          left_, at, left_ + width_, at);
      add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>)", left_ - 0.6 * em_,
          at + 0.35 * em_, svg_text(tick.text));
    }
    if (!what_.y.label.empty())
      add(R"~(<text transform="translate({:.1f} {:.1f}) rotate(-90)" text-anchor="middle">{}</text>)~",
          1.2 * em_, top_ + height_ / 2, svg_text(what_.y.label));
  }

  void x_axis() {
    const double bottom = top_ + height_;
    add(R"(<line class="axis" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#888888"/>)",
        left_, bottom, left_ + width_, bottom);
    double free_from = -1e9;
    for (const auto& tick : what_.x.ticks) {
      const double at = x(tick.at), half = 0.3 * em_ * static_cast<double>(tick.text.size());
      if (at - half < free_from) continue;
      free_from = at + half + 0.6 * em_;
      add(R"(<line class="axis" x1="{0:.1f}" y1="{1:.1f}" x2="{0:.1f}" y2="{2:.1f}" stroke="#888888"/>)",
          at, bottom, bottom + 0.35 * em_);
      add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)", at, bottom + 1.5 * em_,
          svg_text(tick.text));
    }
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)", left_ + width_ / 2,
        bottom + 3.2 * em_, svg_text(what_.x.label));
  }

  /// A band beside a line, or a bar for a single point.
  void confidence(const chart_curve& curve) {
    const auto* colour = chart_colour(curve.colour);
    std::string there, back;
    for (const auto& point : curve.points) {
      if (!point.low || !point.high) continue;
      if (curve.line == chart_line::none || curve.points.size() == 1) {
        add(R"(<line x1="{0:.1f}" y1="{1:.1f}" x2="{0:.1f}" y2="{2:.1f}" stroke="{3}" stroke-width="2"/>)",
            x(point.x), y(*point.low), y(*point.high), colour);
        continue;
      }
      there += fmt::format("{:.1f},{:.1f} ", x(point.x), y(*point.high));
      back.insert(0, fmt::format("{:.1f},{:.1f} ", x(point.x), y(*point.low)));
    }
    if (!there.empty())
      add(R"(<polygon points="{}" fill="{}" fill-opacity="0.18"/>)", there + back, colour);
  }

  void line(const chart_curve& curve) {
    const auto* colour = chart_colour(curve.colour);
    if (curve.line != chart_line::none) {
      std::string points;
      for (const auto& point : curve.points)
        points += fmt::format("{:.1f},{:.1f} ", x(point.x), y(point.y));
      add(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="{}"{}/>)", points, colour,
          curve.line == chart_line::dashed ? 1.5 : 2.2, dash(curve));
    }
    if (curve.dots)
      for (const auto& point : curve.points)
        add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}" fill="{}"/>)", x(point.x), y(point.y),
            curve.line == chart_line::none ? 4.0 : 2.6, colour);
  }

  void legend() {
    double at = top_ + 0.6 * em_;
    for (const auto& curve : what_.curves) {
      if (curve.name.empty()) continue;
      const double from = left_ + width_ + 0.9 * em_;
      add(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" stroke-width="2"{}/>)",
          from, at, from + 2.2 * em_, at, chart_colour(curve.colour), dash(curve));
      add(R"(<text x="{:.1f}" y="{:.1f}">{}</text>)", from + 2.6 * em_, at + 0.3 * em_,
          svg_text(curve.name));
      at += 1.55 * em_;
    }
  }

  static const char* dash(const chart_curve& curve) {
    return curve.line == chart_line::dashed ? " stroke-dasharray=\"5 4\"" : "";
  }

  const chart& what_;
  double em_, left_, top_, width_, height_;
  std::string out_;
};

} // namespace

const char* chart_colour(std::size_t number) {
  static constexpr const char* colours[] = {"#0072b2", "#d55e00", "#009e73",
                                            "#cc79a7", "#56b4e9", "#e69f00"};
  return colours[number % std::size(colours)];
}

std::vector<double> round_ticks(double from, double to, std::size_t about) {
  const double least = (to - from) / static_cast<double>(std::max<std::size_t>(about, 1));
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * 0.999) {
      step = factor * power;
      break;
    }
  std::vector<double> out;
  for (auto i = static_cast<long long>(std::ceil(from / step - 1e-9));
       static_cast<double>(i) * step <= to + 1e-9 * step; ++i)
    out.push_back(static_cast<double>(i) * step);
  return out;
}

std::string chart_svg(const chart& what) {
  return chart_drawing(what).all();
}

} // namespace shoal::tools
