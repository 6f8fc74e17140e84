#include "scenarios/compare/run_versus.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/json_text.hpp"
#include "kernels/base/stats.hpp"
#include "kernels/base/student_t.hpp"
#include "scenarios/observe/text_columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

namespace shoal::scenarios {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

/// The sample variance. Requires: at least two values.
double sample_variance(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  return variance(values) * n / (n - 1);
}

mean_with_error mean_of(const std::vector<double>& values) {
  return {values.size(), mean(values), half_width_of_mean(values)};
}

/// The run directories at a place. A sweep keeps its runs in cells/.
std::vector<fs::path> runs_at(const fs::path& place) {
  std::error_code error;
  const auto cells = place / "cells";
  if (!fs::is_directory(cells, error)) return {place};
  std::vector<fs::path> out;
  for (fs::directory_iterator entry(cells, error), end; !error && entry != end;
       entry.increment(error))
    if (fs::exists(entry->path() / "summary.json", error)) out.push_back(entry->path());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<option_difference> without_seed(std::vector<option_difference> what) {
  std::erase_if(what, [](const option_difference& one) { return one.path == "seed"; });
  return what;
}

bool same_variant(const run_record& a, const run_record& b) {
  return without_seed(options_that_matter(a.yaml, b.yaml)).empty();
}

/// A letter for a variant without a name: A, B, ..., Z, A2.
std::string letter(std::size_t number) {
  const std::string out(1, static_cast<char>('A' + number % 26));
  return number < 26 ? out : out + std::to_string(number / 26 + 1);
}

/// Says of each variant which options it has that differ between variants.
void name_options(std::vector<run_variant>& variants) {
  std::set<std::string> differ;
  const run_record& first = variants.front().runs.front();
  for (const run_variant& each : variants)
    for (const auto& one : without_seed(options_that_matter(first.yaml, each.runs.front().yaml)))
      differ.insert(one.path);
  for (run_variant& each : variants) {
    for (const run_variant& other : variants)
      for (const auto& one :
           without_seed(options_that_matter(each.runs.front().yaml, other.runs.front().yaml))) {
        if (!differ.contains(one.path)) continue;
        // A run.yaml leaves some options out that have their default.
        auto text = fmt::format("{} {}", one.path, one.a.value_or("by default"));
        if (std::find(each.options.begin(), each.options.end(), text) == each.options.end())
          each.options.push_back(std::move(text));
      }
  }
}

std::vector<std::pair<std::uint64_t, double>> values_of(const run_variant& of,
                                                        const run_figure& what) {
  std::vector<std::pair<std::uint64_t, double>> out;
  for (const run_record& run : of.runs)
    if (const auto value = what.of(run); value && std::isfinite(*value))
      out.emplace_back(run.seed, *value);
  return out;
}

variant_difference difference(const run_variant& of, const run_variant& from,
                              const run_figure& what) {
  const auto left = values_of(of, what), right = values_of(from, what);
  std::vector<double> a, b;
  for (const auto& [seed, value] : left)
    for (const auto& [other_seed, other] : right)
      if (seed == other_seed) {
        a.push_back(value);
        b.push_back(other);
        break;
      }
  if (a.size() > 1 || (a.size() == left.size() && a.size() == right.size()))
    return difference_of(a, b, true);
  a.clear(), b.clear();
  for (const auto& each : left) a.push_back(each.second);
  for (const auto& each : right) b.push_back(each.second);
  return difference_of(a, b, false);
}

std::string with_error(const std::optional<mean_with_error>& what, figure_unit unit) {
  if (!what) return "-";
  // The mean of counts is no count.
  const auto text = [&](double value) {
    return unit == figure_unit::count && value != std::floor(value) ? fmt::format("{:.1f}", value)
                                                                    : figure_text(value, unit);
  };
  auto out = text(what->mean);
  if (what->half_width) out += " ± " + text(*what->half_width);
  return out;
}

std::string right(const std::string& text, std::size_t width) {
  const auto columns = columns_of(text);
  return std::string(width > columns ? width - columns : 0, ' ') + text;
}

std::string signed_percent(double fraction) {
  return fmt::format("{:+.1f} %", 100 * fraction);
}

/// A difference as a share of the first variant's mean, with the ends of its interval.
std::string difference_text(const variant_difference& of, double mean) {
  if (of.mean == 0 && of.half_width.value_or(0) == 0) return "the same";
  if (mean == 0) return fmt::format("{:+.4g}", of.mean);
  const double scale = 1 / std::abs(mean);
  auto out = signed_percent(of.mean * scale);
  if (of.half_width)
    out += fmt::format(" ({} to {})", signed_percent((of.mean - *of.half_width) * scale),
                       signed_percent((of.mean + *of.half_width) * scale));
  return out;
}

} // namespace

variant_difference difference_of(const std::vector<double>& of, const std::vector<double>& from,
                                 bool paired) {
  SHOAL_CHECK(!of.empty() && !from.empty(), "a difference needs a value on both sides");
  variant_difference out;
  out.mean = mean(of) - mean(from);
  out.paired = paired;
  if (paired) {
    SHOAL_CHECK(of.size() == from.size(), "pairs have two sides");
    std::vector<double> each;
    for (std::size_t i = 0; i < of.size(); ++i) each.push_back(of[i] - from[i]);
    out.half_width = half_width_of_mean(each);
    return out;
  }
  if (of.size() < 2 || from.size() < 2) return out;
  const auto n = static_cast<double>(of.size()), m = static_cast<double>(from.size());
  const double a = sample_variance(of) / n, b = sample_variance(from) / m;
  if (a + b == 0) {
    out.half_width = 0;
    return out;
  }
  const double degrees = (a + b) * (a + b) / (a * a / (n - 1) + b * b / (m - 1));
  // Whole degrees of freedom, rounded down, make the interval a little wider.
  out.half_width =
      student_t_975(std::max<std::size_t>(1, static_cast<std::size_t>(degrees))) * std::sqrt(a + b);
  return out;
}

std::optional<std::size_t> versus_figure::better(std::size_t variant) const {
  const auto& of = differences[variant];
  if (!of || !of->shown() || what->better == 0) return std::nullopt;
  return (of->mean > 0) == (what->better > 0) ? variant : 0;
}

result<run_versus> hold_against(const std::vector<std::string>& places) {
  run_versus out;
  std::size_t named = 0;
  for (const std::string& place : places) {
    std::error_code error;
    const auto equals = place.find('=');
    const bool has_name = equals != std::string::npos && equals > 0 && !fs::exists(place, error);
    const std::string name = has_name ? place.substr(0, equals) : "";
    const fs::path path = has_name ? place.substr(equals + 1) : place;
    named += has_name ? 1 : 0;
    const auto runs = runs_at(path);
    if (runs.empty())
      return failure{fmt::format("'{}' is a sweep without a finished run", path.string())};
    for (const fs::path& run : runs) {
      auto record = read_run_record(run);
      if (!record) return failure{record.error()};
      out.notes.insert(out.notes.end(), record->notes.begin(), record->notes.end());
      const auto found =
          std::find_if(out.variants.begin(), out.variants.end(), [&](const run_variant& each) {
            return has_name ? each.name == name : same_variant(each.runs.front(), *record);
          });
      if (found != out.variants.end())
        found->runs.push_back(std::move(*record));
      else {
        out.variants.push_back({name, {}, {}});
        out.variants.back().runs.push_back(std::move(*record));
      }
    }
  }
  if (named > 0 && named < places.size())
    return failure{"some places have names and others have not: write NAME=DIR for each, or for "
                   "none"};
  if (out.variants.size() < 2)
    return failure{
        fmt::format("there is one variant only: the runs differ in nothing that matters{}",
                    named > 0 ? "" : "; NAME=DIR names variants that have the same options")};
  for (std::size_t i = 0; i < out.variants.size(); ++i) {
    run_variant& each = out.variants[i];
    if (each.name.empty()) each.name = letter(i);
    std::stable_sort(each.runs.begin(), each.runs.end(),
                     [](const run_record& a, const run_record& b) { return a.seed < b.seed; });
    for (std::size_t k = 1; k < each.runs.size(); ++k)
      if (each.runs[k].seed == each.runs[k - 1].seed)
        out.notes.push_back(fmt::format("{} has seed {} twice: '{}' and '{}'", each.name,
                                        each.runs[k].seed, each.runs[k - 1].path,
                                        each.runs[k].path));
  }
  name_options(out.variants);
  const bool few = std::any_of(out.variants.begin(), out.variants.end(),
                               [](const run_variant& each) { return each.runs.size() < 2; });
  if (few)
    out.notes.emplace_back("a variant with one run has no interval: run more seeds to see what is "
                           "chance");
  for (const run_figure& what : run_figures()) {
    versus_figure figure;
    figure.what = &what;
    bool some = false;
    for (const run_variant& each : out.variants) {
      std::vector<double> values;
      for (const auto& [seed, value] : values_of(each, what)) values.push_back(value);
      figure.values.push_back(values.empty() ? std::nullopt : std::optional(mean_of(values)));
      some = some || (figure.values.back() && figure.values.back()->mean != 0);
      const bool both = figure.values.front() && figure.values.back();
      figure.differences.push_back(both && figure.values.size() > 1
                                       ? std::optional(difference(each, out.variants.front(), what))
                                       : std::nullopt);
    }
    if (some) out.figures.push_back(std::move(figure));
  }
  return out;
}

std::string to_text(const run_versus& what) {
  std::string out;
  std::size_t width = 14, name_width = 1;
  for (const run_variant& each : what.variants) name_width = std::max(name_width, each.name.size());
  for (const run_variant& each : what.variants) {
    out += fmt::format("{:<{}}  {}\n", each.name, name_width,
                       each.options.empty() ? each.runs.front().scenario
                                            : fmt::format("{}", fmt::join(each.options, ", ")));
    std::vector<std::string> seeds;
    for (const run_record& run : each.runs) seeds.push_back(std::to_string(run.seed));
    out += fmt::format("{:<{}}  {} {} (seed {}), {}{}\n", "", name_width, each.runs.size(),
                       each.runs.size() == 1 ? "run" : "runs", fmt::join(seeds, ", "),
                       each.runs.front().path, each.runs.size() == 1 ? "" : ", ...");
    width = std::max(width, each.name.size() + 2);
  }
  for (const versus_figure& figure : what.figures)
    for (const auto& value : figure.values)
      width = std::max(width, columns_of(with_error(value, figure.what->unit)) + 2);
  constexpr std::size_t label = 24;
  out += "\n" + std::string(label, ' ');
  for (const run_variant& each : what.variants) out += right(each.name, width);
  const auto& first = what.variants.front().name;
  if (what.variants.size() == 2)
    out += fmt::format("   {} against {}", what.variants.back().name, first);
  out += "\n";
  std::string section;
  for (const versus_figure& figure : what.figures) {
    if (figure.what->section != section) out += std::string(figure.what->section) + "\n";
    section = figure.what->section;
    out += fmt::format("  {:<{}}", figure.what->name, label - 2);
    for (const auto& value : figure.values)
      out += right(with_error(value, figure.what->unit), width);
    for (std::size_t i = 1; i < what.variants.size(); ++i) {
      if (!figure.differences[i]) continue;
      const bool two = what.variants.size() == 2;
      out += two ? "   " : fmt::format("\n    {} against {}: ", what.variants[i].name, first);
      out += difference_text(*figure.differences[i], figure.values.front()->mean);
      if (const auto better = figure.better(i))
        out += fmt::format("  {} is better", what.variants[*better].name);
    }
    out += "\n";
  }
  out += "\n";
  for (std::size_t i = 1; i < what.variants.size(); ++i) {
    std::vector<std::string> in_first, in_this, unclear;
    for (const versus_figure& figure : what.figures) {
      if (figure.what->better == 0 || !figure.differences[i]) continue;
      // Without an interval nothing can be said.
      if (!figure.differences[i]->half_width) continue;
      const auto name = fmt::format("{}: {}", figure.what->section, figure.what->name);
      const auto better = figure.better(i);
      (!better ? unclear : *better == 0 ? in_first : in_this).push_back(name);
    }
    for (const auto& [name, list] :
         {std::pair(&first, &in_first), std::pair(&what.variants[i].name, &in_this)})
      if (!list->empty())
        out += fmt::format("{} is better in: {}\n", *name, fmt::join(*list, "; "));
    if (!unclear.empty())
      out += fmt::format("no difference between {} and {} is shown in: {}\n", first,
                         what.variants[i].name, fmt::join(unclear, "; "));
  }
  for (const std::string& note : what.notes) out += fmt::format("note: {}\n", note);
  return out;
}

std::string to_json(const run_versus& what) {
  json out;
  out["variants"] = json::array();
  for (const run_variant& each : what.variants) {
    json runs = json::array();
    for (const run_record& run : each.runs)
      runs.push_back({{"path", run.path}, {"seed", run.seed}});
    out["variants"].push_back(
        {{"name", each.name}, {"options", each.options}, {"runs", std::move(runs)}});
  }
  const auto number = [](const std::optional<double>& value) {
    return value ? json(*value) : json(nullptr);
  };
  out["figures"] = json::array();
  for (const versus_figure& figure : what.figures) {
    json values = json::array(), differences = json::array();
    for (const auto& value : figure.values)
      values.push_back(value ? json{{"runs", value->runs},
                                    {"mean", value->mean},
                                    {"half_width", number(value->half_width)}}
                             : json(nullptr));
    for (std::size_t i = 1; i < figure.differences.size(); ++i) {
      const auto& one = figure.differences[i];
      if (!one) {
        differences.push_back(nullptr);
        continue;
      }
      const auto better = figure.better(i);
      differences.push_back(
          {{"mean", one->mean},
           {"half_width", number(one->half_width)},
           {"paired", one->paired},
           {"shown", one->shown()},
           {"better", better ? json(what.variants[*better].name) : json(nullptr)}});
    }
    out["figures"].push_back({{"key", figure.what->key},
                              {"section", figure.what->section},
                              {"name", figure.what->name},
                              {"values", std::move(values)},
                              {"against_first", std::move(differences)}});
  }
  out["notes"] = what.notes;
  return clean_json_text(out, 2) + "\n";
}

} // namespace shoal::scenarios
