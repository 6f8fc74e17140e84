#include "scenarios/sweep/table.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/json_text.hpp"
#include "kernels/base/stats.hpp"
#include "kernels/base/student_t.hpp"
#include "scenarios/observe/output_text.hpp"
#include "scenarios/observe/text_columns.hpp"
#include "scenarios/record/run_files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace shoal::scenarios {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr std::array usual_metrics{"virtual_seconds", "epochs",    "samples_per_second",
                                   "loss.final",      "rounds.ok", "rounds.failed",
                                   "bytes_sent.total"};

constexpr std::array known_numbers{"virtual_seconds",      "epochs",           "samples",
                                   "samples_per_second",   "loss.first",       "loss.final",
                                   "loss.baseline",        "loss.bigram",      "rounds.ok",
                                   "rounds.partial",       "rounds.split",     "rounds.failed",
                                   "rounds.mean_seconds",  "bytes_sent.total", "bytes_sent.data",
                                   "bytes_sent.averaging", "bytes_sent.state", "bytes_sent.control",
                                   "peers.joined",         "peers.left",       "peers.alive",
                                   "faults.struck",        "wall_seconds",     "peak_rss_bytes"};

/// Nine digits hide the last bits of a sum, which depend on the order of additions.
std::string exact(double value) {
  return fmt::format("{:.9g}", value);
}

bool is_bytes(std::string_view metric) {
  return metric.starts_with("bytes_sent.") || metric == "peak_rss_bytes";
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

/// Returns the value of a varied option, escaped for a cell of Markdown.
std::string markdown_field(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text;
}

/// Returns the columns that name the point of a row.
std::vector<std::string> values_of(const sweep_plan& plan, std::size_t point) {
  std::vector<std::string> out;
  const auto chosen = plan.choices(point);
  for (std::size_t i = 0; i < chosen.size(); ++i) out.push_back(plan.vary[i].values[chosen[i]]);
  return out;
}

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], columns_of(row[i]));
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += (i == 0 ? "" : "  ");
      out.append(widths[i] - columns_of(row[i]), ' ');
      out += row[i];
    }
    out += '\n';
  }
  return out;
}

} // namespace

estimate estimate_of(const std::vector<double>& values) {
  SHOAL_CHECK(!values.empty(), "nothing to estimate from");
  return {values.size(), mean(values), half_width_of_mean(values),
          *std::min_element(values.begin(), values.end()),
          *std::max_element(values.begin(), values.end())};
}

std::vector<std::string> sweep_metrics() {
  return {known_numbers.begin(), known_numbers.end()};
}

bool is_sweep_metric(std::string_view name) {
  return std::find(known_numbers.begin(), known_numbers.end(), name) != known_numbers.end() ||
         (name.starts_with("rounds.by_reason.") && summary_number(summary{}, name));
}

std::optional<double> sweep_number(const summary& of, std::string_view metric) {
  if (metric == "samples_per_second")
    return of.virtual_seconds > 0
               ? std::optional(static_cast<double>(of.samples) / of.virtual_seconds)
               : std::nullopt;
  if (metric == "bytes_sent.total")
    return static_cast<double>(of.bytes_sent.data + of.bytes_sent.averaging + of.bytes_sent.state +
                               of.bytes_sent.control);
  return summary_number(of, metric);
}

result<sweep_table> make_table(const sweep_plan& plan, const fs::path& directory) {
  auto metrics = plan.metrics;
  if (metrics.empty()) metrics.assign(usual_metrics.begin(), usual_metrics.end());
  sweep_table out;
  out.cells.resize(plan.cells());
  std::vector<bool> anybody(metrics.size());
  for (std::size_t cell = 0; cell < plan.cells(); ++cell) {
    const auto run = directory / "cells" / cell_name(plan, cell);
    std::error_code error;
    if (!fs::exists(run / "summary.json", error)) continue;
    const auto summary = read_summary(run);
    if (!summary) return failure{summary.error()};
    for (std::size_t m = 0; m < metrics.size(); ++m) {
      out.cells[cell].push_back(sweep_number(*summary, metrics[m]));
      if (out.cells[cell].back()) anybody[m] = true;
    }
  }
  for (std::size_t m = metrics.size(); m-- > 0;) {
    if (anybody[m] || !plan.metrics.empty()) continue;
    const auto at = static_cast<std::ptrdiff_t>(m);
    metrics.erase(metrics.begin() + at);
    for (auto& cell : out.cells)
      if (!cell.empty()) cell.erase(cell.begin() + at);
  }
  for (std::size_t point = 0; point < plan.points(); ++point) {
    sweep_row row{point, 0, {}};
    std::vector<std::vector<double>> values(metrics.size());
    for (std::size_t i = 0; i < plan.seeds.size(); ++i) {
      const auto& cell = out.cells[point * plan.seeds.size() + i];
      if (!cell.empty()) ++row.runs;
      for (std::size_t m = 0; m < cell.size(); ++m)
        if (cell[m]) values[m].push_back(*cell[m]);
    }
    for (const auto& each : values)
      row.metrics.push_back(each.empty() ? std::nullopt : std::optional(estimate_of(each)));
    out.rows.push_back(std::move(row));
  }
  out.metrics = std::move(metrics);
  return out;
}

std::string metric_text(std::string_view metric, double value) {
  if (is_bytes(metric))
    return bytes_text(static_cast<std::uint64_t>(std::llround(std::max(0.0, value))));
  // Whole numbers keep their digits: 12345 epochs must not become 1.234e+04.
  if (value == std::round(value) && std::abs(value) < 1e7) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

std::string estimate_text(std::string_view metric, const std::optional<estimate>& what) {
  if (!what) return "-";
  if (!what->half_width) return metric_text(metric, what->mean);
  return fmt::format("{} ± {}", metric_text(metric, what->mean),
                     is_bytes(metric) ? metric_text(metric, *what->half_width)
                                      : fmt::format("{:.2g}", *what->half_width));
}

std::string table_text(const sweep_plan& plan, const sweep_table& table, std::size_t columns) {
  std::string out;
  for (std::size_t first = 0; first < table.metrics.size() || first == 0;) {
    // A block takes metrics until it is too wide; it has at least one.
    std::string block;
    std::size_t last = first;
    while (last < table.metrics.size()) {
      std::vector<std::vector<std::string>> rows(1);
      for (const auto& each : plan.vary) rows[0].push_back(each.path);
      rows[0].push_back("runs");
      for (std::size_t m = first; m <= last; ++m) rows[0].push_back(table.metrics[m]);
      for (const auto& row : table.rows) {
        rows.push_back(values_of(plan, row.point));
        rows.back().push_back(std::to_string(row.runs));
        for (std::size_t m = first; m <= last; ++m)
          rows.back().push_back(estimate_text(table.metrics[m], row.metrics[m]));
      }
      auto wider = aligned(rows);
      if (last > first && columns_of(wider.substr(0, wider.find('\n'))) > columns) break;
      block = std::move(wider);
      ++last;
    }
    if (last == first) return "no finished cell\n";
    out += (out.empty() ? "" : "\n") + block;
    first = last;
  }
  return out;
}

std::string table_markdown(const sweep_plan& plan, const sweep_table& table) {
  std::string head = "|", rule = "|", out;
  for (const auto& each : plan.vary)
    head += fmt::format(" {} |", markdown_field(each.path)), rule += "---|";
  head += " runs |", rule += "--:|";
  for (const auto& metric : table.metrics) head += fmt::format(" {} |", metric), rule += "--:|";
  for (const auto& row : table.rows) {
    out += "|";
    for (const auto& value : values_of(plan, row.point))
      out += fmt::format(" {} |", markdown_field(value));
    out += fmt::format(" {} |", row.runs);
    for (std::size_t m = 0; m < table.metrics.size(); ++m)
      out += fmt::format(" {} |", estimate_text(table.metrics[m], row.metrics[m]));
    out += "\n";
  }
  return head + "\n" + rule + "\n" + out;
}

std::string table_csv(const sweep_plan& plan, const sweep_table& table) {
  std::string out;
  for (const auto& each : plan.vary) out += csv_field(each.path) + ",";
  out += "runs";
  for (const auto& metric : table.metrics)
    out += fmt::format(",{0},{0}.ci95,{0}.min,{0}.max", metric);
  out += "\n";
  for (const auto& row : table.rows) {
    for (const auto& value : values_of(plan, row.point)) out += csv_field(value) + ",";
    out += std::to_string(row.runs);
    for (const auto& each : row.metrics)
      out += each ? fmt::format(",{},{},{},{}", exact(each->mean),
                                each->half_width ? exact(*each->half_width) : "",
                                exact(each->least), exact(each->most))
                  : ",,,,";
    out += "\n";
  }
  return out;
}

std::string cells_csv(const sweep_plan& plan, const sweep_table& table) {
  std::string out = "cell";
  for (const auto& each : plan.vary) out += "," + csv_field(each.path);
  out += ",seed";
  for (const auto& metric : table.metrics) out += "," + metric;
  out += "\n";
  for (std::size_t cell = 0; cell < table.cells.size(); ++cell) {
    if (table.cells[cell].empty()) continue;
    out += cell_name(plan, cell);
    for (const auto& value : values_of(plan, plan.point_of(cell))) out += "," + csv_field(value);
    out += fmt::format(",{}", plan.seed_of(cell));
    for (const auto& each : table.cells[cell]) out += "," + (each ? exact(*each) : std::string{});
    out += "\n";
  }
  return out;
}

std::string table_json(const sweep_plan& plan, const sweep_table& table) {
  json out{{"scenario", plan.scenario},
           {"set", plan.sets},
           {"vary", json::array()},
           {"seeds", plan.seeds},
           {"points", json::array()}};
  for (const auto& each : plan.vary)
    out["vary"].push_back({{"path", each.path}, {"values", each.values}});
  for (const auto& row : table.rows) {
    json point{
        {"values", values_of(plan, row.point)}, {"runs", row.runs}, {"metrics", json::object()}};
    for (std::size_t m = 0; m < table.metrics.size(); ++m) {
      auto& at = point["metrics"][table.metrics[m]];
      const auto& each = row.metrics[m];
      if (each)
        at = {{"n", each->n},
              {"mean", each->mean},
              {"ci95", each->half_width ? json(*each->half_width) : json()},
              {"min", each->least},
              {"max", each->most}};
    }
    out["points"].push_back(std::move(point));
  }
  return clean_json_text(out, 2) + "\n";
}

} // namespace shoal::scenarios
