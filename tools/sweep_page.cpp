#include "tools/sweep_page.hpp"

#include "tools/page_head.hpp"
#include "tools/svg_chart.hpp"
#include "tools/svg_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

namespace shoal::tools {

namespace {

using scenarios::sweep_plan;
using scenarios::sweep_table;

constexpr std::size_t most_panels = 120, most_rows = 1000, most_series = 6;

/// The roles of the swept options: the x axis of the panels, their curves, or panels of their own.
struct layout {
  std::optional<std::size_t> x, series;
  std::vector<std::size_t> facets;
  bool numeric = false;
};

layout layout_of(const sweep_plan& plan) {
  layout out;
  const auto numeric = [&](std::size_t i) {
    return std::all_of(
        plan.vary[i].values.begin(), plan.vary[i].values.end(),
        [](const auto& value) { return scenarios::magnitude_of(value).has_value(); });
  };
  for (std::size_t i = 0; i < plan.vary.size(); ++i)
    if (plan.vary[i].values.size() > 1 && numeric(i) && !out.x) {
      out.x = i;
      out.numeric = true;
    }
  if (!out.x && !plan.vary.empty()) out.x = 0;
  for (std::size_t i = 0; i < plan.vary.size(); ++i) {
    if (i == out.x) continue;
    if (!out.series && plan.vary[i].values.size() <= most_series)
      out.series = i;
    else
      out.facets.push_back(i);
  }
  return out;
}

chart_axis x_axis(const sweep_plan& plan, const layout& how) {
  chart_axis out;
  if (!how.x) return out;
  const auto& option = plan.vary[*how.x];
  out.label = option.path;
  for (std::size_t i = 0; i < option.values.size(); ++i)
    out.ticks.push_back(
        {how.numeric ? *scenarios::magnitude_of(option.values[i]) : static_cast<double>(i),
         option.values[i]});
  std::sort(out.ticks.begin(), out.ticks.end(),
            [](const auto& a, const auto& b) { return a.at < b.at; });
  out.from = out.ticks.front().at;
  out.to = out.ticks.back().at;
  out.logarithmic = how.numeric && out.from > 0 && out.to / out.from >= 30;
  const double room = (out.to - out.from) * 0.04;
  if (!how.numeric) {
    out.from -= 0.5;
    out.to += 0.5;
  } else if (out.logarithmic) {
    const double ratio = std::pow(out.to / out.from, 0.04);
    out.from /= ratio;
    out.to *= ratio;
  } else {
    out.from -= room;
    out.to += room;
  }
  return out;
}

/// An axis with round numbers. Bytes are in the unit of the largest value.
chart_axis y_axis(const std::string& metric, double from, double to) {
  chart_axis out;
  const double room = to > from ? (to - from) * 0.08 : std::max(std::abs(to) * 0.1, 1e-9);
  out.from = from >= 0 ? std::max(0.0, from - room) : from - room;
  out.to = to + room;
  if (out.to <= out.from) out.to = out.from + 1;
  static constexpr const char* units[] = {"", " KiB", " MiB", " GiB", " TiB"};
  double unit = 1;
  std::size_t name = 0;
  if (metric.starts_with("bytes_sent.") || metric == "peak_rss_bytes")
    while (out.to / unit >= 1024 && name + 1 < std::size(units)) unit *= 1024, ++name;
  for (const double tick : round_ticks(out.from / unit, out.to / unit, 5))
    out.ticks.push_back({tick * unit, fmt::format("{:g}{}", tick, units[name])});
  return out;
}

/// The values of the options that select a panel.
std::string facet_text(const sweep_plan& plan, const layout& how,
                       const std::vector<std::size_t>& chosen) {
  std::string out;
  for (const auto i : how.facets)
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", plan.vary[i].path,
                       plan.vary[i].values[chosen[i]]);
  return out;
}

/// The panels of a metric, all over the same axes, so that they can be compared.
std::vector<chart> panels_of(const sweep_plan& plan, const sweep_table& table, const layout& how,
                             std::size_t metric) {
  std::optional<double> least, most;
  std::map<std::vector<std::size_t>, std::size_t> number; // panel number of each facet
  std::vector<chart> out;
  const auto axis = x_axis(plan, how);
  for (const auto& row : table.rows) {
    const auto& what = row.metrics[metric];
    if (!what) continue;
    const auto chosen = plan.choices(row.point);
    std::vector<std::size_t> facet;
    for (const auto i : how.facets) facet.push_back(chosen[i]);
    const auto [at, fresh] = number.emplace(facet, out.size());
    if (fresh) {
      chart made;
      const auto of = facet_text(plan, how, chosen);
      made.title = table.metrics[metric] + (of.empty() ? "" : ", " + of);
      made.x = axis;
      made.width = 420;
      made.height = 290;
      made.font_size = 12;
      const std::size_t series = how.series ? plan.vary[*how.series].values.size() : 1;
      for (std::size_t s = 0; s < series; ++s)
        made.curves.push_back({how.series ? plan.vary[*how.series].values[s] : "",
                               {},
                               how.numeric ? chart_line::solid : chart_line::none,
                               true,
                               s});
      out.push_back(std::move(made));
    }
    const double half = what->half_width.value_or(0);
    chart_point point{0, what->mean, {}, {}};
    if (what->half_width) point.low = what->mean - half, point.high = what->mean + half;
    if (how.x)
      point.x = how.numeric ? *scenarios::magnitude_of(plan.vary[*how.x].values[chosen[*how.x]])
                            : static_cast<double>(chosen[*how.x]);
    const std::size_t series = how.series ? chosen[*how.series] : 0;
    // Series are drawn beside each other, so that they do not overlap.
    if (!how.numeric && how.series)
      point.x += (static_cast<double>(series) -
                  static_cast<double>(out[at->second].curves.size() - 1) / 2) *
                 0.12;
    out[at->second].curves[series].points.push_back(point);
    least = std::min(least.value_or(what->mean - half), what->mean - half);
    most = std::max(most.value_or(what->mean + half), what->mean + half);
  }
  for (auto& panel : out) {
    panel.y = y_axis(table.metrics[metric], *least, *most);
    for (auto& curve : panel.curves)
      std::stable_sort(curve.points.begin(), curve.points.end(),
                       [](const auto& a, const auto& b) { return a.x < b.x; });
  }
  return out;
}

/// The value of a metric that is the same in all runs, if it is.
std::optional<double> same_everywhere(const sweep_table& table, std::size_t metric) {
  std::optional<double> out;
  for (const auto& row : table.rows) {
    const auto& what = row.metrics[metric];
    if (!what) continue;
    if (what->least != what->most || (out && *out != what->mean)) return std::nullopt;
    out = what->mean;
  }
  return out;
}

std::string legend(const sweep_plan& plan, const layout& how) {
  if (!how.series) return {};
  std::string out = "<ul>";
  const auto& option = plan.vary[*how.series];
  for (std::size_t i = 0; i < option.values.size(); ++i)
    out += fmt::format("<li><b style=\"background:{}\"></b>{}={}</li>", chart_colour(i),
                       svg_text(option.path), svg_text(option.values[i]));
  return out + "</ul>\n";
}

std::string panels_html(const sweep_plan& plan, const sweep_table& table) {
  const auto how = layout_of(plan);
  std::string panels, same;
  std::size_t drawn = 0, left_out = 0;
  for (std::size_t metric = 0; metric < table.metrics.size(); ++metric) {
    const auto& name = table.metrics[metric];
    if (const auto value = same_everywhere(table, metric)) {
      same += fmt::format("{}{} {}", same.empty() ? "" : ", ", name,
                          scenarios::metric_text(name, *value));
      continue;
    }
    for (const auto& panel : panels_of(plan, table, how, metric)) {
      if (drawn == most_panels) {
        ++left_out;
        continue;
      }
      ++drawn;
      panels += fmt::format("<figure><svg viewBox=\"0 0 {} {}\" font-size=\"{}\" role=\"img\" "
                            "aria-label=\"{}\">\n{}</svg></figure>\n",
                            panel.width, panel.height, panel.font_size, svg_text(panel.title),
                            chart_svg(panel));
    }
  }
  std::string out;
  if (!panels.empty())
    out = "<h2>By " + svg_text(how.x ? plan.vary[*how.x].path : "metric") + "</h2>\n" +
          legend(plan, how) + "<div class=\"panels\">\n" + panels + "</div>\n";
  if (!same.empty()) out += "<p>The same in all runs: " + svg_text(same) + "</p>\n";
  if (left_out > 0)
    out += fmt::format("<p>{} more panels were left out; table.csv has all</p>\n", left_out);
  return out;
}

std::string table_html(const sweep_plan& plan, const sweep_table& table) {
  std::string out = "<h2>Table</h2>\n<div class=\"table\"><table>\n<tr>";
  for (const auto& each : plan.vary) out += "<th>" + svg_text(each.path) + "</th>";
  out += "<th>runs</th>";
  for (const auto& metric : table.metrics) out += "<th>" + svg_text(metric) + "</th>";
  out += "</tr>\n";
  for (std::size_t r = 0; r < std::min(table.rows.size(), most_rows); ++r) {
    const auto& row = table.rows[r];
    out += "<tr>";
    const auto chosen = plan.choices(row.point);
    for (std::size_t i = 0; i < chosen.size(); ++i)
      out += "<td>" + svg_text(plan.vary[i].values[chosen[i]]) + "</td>";
    out += fmt::format("<td>{}</td>", row.runs);
    for (std::size_t m = 0; m < table.metrics.size(); ++m)
      out += "<td>" + scenarios::estimate_text(table.metrics[m], row.metrics[m]) + "</td>";
    out += "</tr>\n";
  }
  out += "</table></div>\n";
  if (table.rows.size() > most_rows)
    out += fmt::format("<p>{} more rows were left out; table.csv has all</p>\n",
                       table.rows.size() - most_rows);
  return out;
}

} // namespace

std::string sweep_page(const sweep_plan& plan, const sweep_table& table, const std::string& title,
                       const std::string& command) {
  const auto name = "Sweep of " + svg_text(title);
  auto out = page_head(name);
  std::size_t runs = 0;
  for (const auto& row : table.rows) runs += row.runs;
  out += fmt::format("<h1>{}</h1>\n<p>{} runs of {}: {} points with {} seed{} each. Means; bands "
                     "and ± are 95 % confidence intervals by Student's t over the seeds.</p>\n",
                     name, runs, plan.cells(), plan.points(), plan.seeds.size(),
                     plan.seeds.size() == 1 ? "" : "s");
  return out + panels_html(plan, table) + table_html(plan, table) + "<p><code>" +
         svg_text(command) + "</code></p>\n</body>\n</html>\n";
}

} // namespace shoal::tools
