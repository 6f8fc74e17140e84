// How far a run was from its prediction: the figures of both side by side, the error of each, and
// whether those that are judged stay within what is allowed. `shoal diff` (run_diff.hpp) asks
// another question: whether two runs of one world are the same, event by event, and which option
// made them part.
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

/// One line of the table.
struct compared_figure {
  std::string section, name; ///< as people see it: 'rounds', 'time, mean'
  std::string key;           ///< as --tolerance names it: 'round'
  figure_unit unit = figure_unit::count;
  std::optional<double> predicted, actual;
  std::optional<double>
      tolerance{}; ///< a fraction of what was predicted; nothing: it is shown, not judged

  /// (actual - predicted) / |predicted|, 0 if they are equal; nothing if one is missing, or 0 was
  /// predicted and it is not.
  std::optional<double> error() const;
  /// Judged: there is a tolerance, and at least one of the two has the figure.
  bool judged() const { return tolerance && (predicted || actual); }
  /// Requires: judged(). A figure that only one side has is beyond any tolerance.
  bool within() const;
};

/// A loss at the epochs that both runs have it at.
struct compared_loss {
  std::string name; ///< 'train', 'held out'
  struct point {
    std::uint64_t epoch = 0;
    double predicted = 0, actual = 0;
  };
  std::vector<point> points; ///< ascending
  /// The point with the largest |actual - predicted|. Requires: points not empty.
  const point& largest() const;
};

struct run_comparison {
  run_record predicted, actual;
  std::vector<compared_figure> figures;
  std::vector<compared_loss> losses; ///< only those with points
  std::vector<std::string> notes;

  bool within() const;
};

/// What is judged, and how strictly. By default `round`, `rate` and `bytes` may be 10 % off and
/// `loss` 3 %.
class tolerances {
public:
  tolerances();
  /// '10%' for everything that is judged, or 'loss=3%' for one figure, which then is judged, or
  /// 'bytes=off'. What names a figure wins, whatever the order. Errors: no fraction, or no such
  /// figure (lists them).
  static result<tolerances> parse(std::span<const std::string> arguments);

  std::optional<double> of(const std::string& key) const;

private:
  std::map<std::string, std::optional<double>> by_key_;
};

/// Every key of the table, but for reasons, which are not judged.
std::vector<std::string> figure_keys();

/// Errors: one side has no run, or a damaged one; the scenarios differ in an option that matters
/// (the first one is named), unless `force`.
result<run_comparison> compare_runs(const std::filesystem::path& predicted,
                                    const std::filesystem::path& actual,
                                    const tolerances& allowed = {}, bool force = false);

struct comparison_style {
  std::size_t columns = 80;
  bool colour = false;
};
/// For people: the table, the losses, the verdict. On less than 72 columns a figure takes two
/// lines.
std::string to_text(const run_comparison& what, const comparison_style& style = {});
std::string to_json(const run_comparison& what);

} // namespace shoal::scenarios
