// Compares a run with its prediction. The comparison shows the figures of both side by side, the
// error of each figure, and whether the judged figures stay within their tolerance. `shoal diff`
// (run_diff.hpp) asks another question: whether two runs of one world are equal, event by event,
// and which option made them diverge.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/compare/run_record.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shoal::scenarios {

enum class figure_unit : std::uint8_t { seconds, per_second, bytes, count, nats };

/// A figure that every run has.
struct run_figure {
  const char* section; ///< as tables show it: 'rounds'
  const char* name;    ///< 'time, mean'
  const char* key;     ///< the name in options: 'round'
  figure_unit unit;
  int better; ///< 1: more is better, -1: less is better, 0: neither
  std::optional<double> (*of)(const run_record&);
};
/// All figures, in the order of tables.
std::span<const run_figure> run_figures();
/// A value as tables show it: '12.3 MiB'; '-' without a value.
std::string figure_text(const std::optional<double>& value, figure_unit unit);

/// One line of the table.
struct compared_figure {
  std::string section, name; ///< as the table shows them: 'rounds', 'time, mean'
  std::string key;           ///< the name for --tolerance: 'round'
  figure_unit unit = figure_unit::count;
  std::optional<double> predicted, actual;
  /// A fraction of the predicted value. Empty: the figure is shown and not judged.
  std::optional<double> tolerance{};

  /// (actual - predicted) / |predicted|; 0 if the two are equal. Empty if one is missing, or if 0
  /// was predicted and the actual value differs.
  std::optional<double> error() const;
  /// Whether the figure is judged: it has a tolerance, and at least one side has a value.
  bool judged() const { return tolerance && (predicted || actual); }
  /// Whether the error is within the tolerance. A figure that only one side has is never within.
  /// Requires: judged().
  bool within() const;
};

/// A loss at the epochs for which both runs have a value.
struct compared_loss {
  std::string name; ///< 'train', 'held out'
  struct point {
    std::uint64_t epoch = 0;
    double predicted = 0, actual = 0;
  };
  std::vector<point> points; ///< ascending by epoch
  /// The point with the largest |actual - predicted|. Requires: points not empty.
  const point& largest() const;
};

struct run_comparison {
  run_record predicted, actual;
  std::vector<compared_figure> figures;
  std::vector<compared_loss> losses; ///< losses without points are left out
  std::vector<std::string> notes;

  bool within() const;
};

/// The figures that are judged, and their tolerances. By default `round`, `rate` and `bytes` may be
/// 10 % off and `loss` 3 %.
class tolerances {
public:
  tolerances();
  /// Parses '10%' for all judged figures, 'loss=3%' for one figure, which then is judged, or
  /// 'bytes=off'. An argument that names a figure precedes one that does not, in any order.
  /// Errors: a value is no fraction; there is no such figure (the message lists the figures).
  static result<tolerances> parse(std::span<const std::string> arguments);

  std::optional<double> of(const std::string& key) const;

private:
  std::map<std::string, std::optional<double>> by_key_;
};

/// Every key of the table except for reasons, which are not judged.
std::vector<std::string> figure_keys();

/// Errors: one side has no run or a damaged one. Without `force`, also: the scenarios differ in an
/// option that matters (the message names the first such option).
result<run_comparison> compare_runs(const std::filesystem::path& predicted,
                                    const std::filesystem::path& actual,
                                    const tolerances& allowed = {}, bool force = false);

struct comparison_style {
  std::size_t columns = 80;
  bool colour = false;
};
/// The comparison for people: the table, the losses, the verdict. If the style has less than 72
/// columns, a figure takes two lines.
std::string to_text(const run_comparison& what, const comparison_style& style = {});
std::string to_json(const run_comparison& what);

} // namespace shoal::scenarios
