// Holds variants of a scenario against each other: two strategies, two rates, two versions. A
// variant has one run or several, which differ in their seeds. Each figure has its mean over the
// seeds with a 95 % confidence interval by Student's t, and the difference to the first variant:
//   with at least two common seeds: the mean of the differences by seed, paired
//   otherwise:                      the difference of the means (Welch)
// A figure is better in one variant if the interval of the difference does not hold 0. Each figure
// is judged by itself, so of twenty equal ones one looks different by chance. Source: Welch, "The
// generalization of 'Student's' problem when several different population variances are involved",
// Biometrika 34 (1947).
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/compare/run_comparison.hpp"
#include "scenarios/compare/run_record.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct run_variant {
  std::string name; ///< 'A', or as the user named it
  /// The options with other values in another variant: 'averaging.strategy moshpit'.
  std::vector<std::string> options;
  std::vector<run_record> runs; ///< by seed
};

struct mean_with_error {
  std::size_t runs = 0; ///< number of runs with this figure, at least 1
  double mean = 0;
  std::optional<double> half_width; ///< half of the interval; empty for a single run
};

struct variant_difference {
  double mean = 0;                  ///< mean of this variant, less that of the first one
  std::optional<double> half_width; ///< empty with too few runs
  bool paired = false;              ///< by seed
  /// Whether the interval shows a difference.
  bool shown() const { return half_width && (mean > *half_width || mean < -*half_width); }
};

struct versus_figure {
  const run_figure* what = nullptr;
  std::vector<std::optional<mean_with_error>> values;         ///< by variant
  std::vector<std::optional<variant_difference>> differences; ///< by variant; none for the first
  /// The variant that is better than another, by the figure's direction; empty if no difference is
  /// shown or the figure has no direction.
  std::optional<std::size_t> better(std::size_t variant) const;
};

struct run_versus {
  std::vector<run_variant> variants;
  std::vector<versus_figure> figures; ///< the figures of at least one run
  std::vector<std::string> notes;
};

/// The difference of the means of two samples. `paired`: both samples have the same seeds in the
/// same order. Requires: neither is empty; with `paired` equal sizes.
variant_difference difference_of(const std::vector<double>& of, const std::vector<double>& from,
                                 bool paired);

/// `places`: run directories, folders of a cluster's nodes, or directories of sweeps. 'NAME=PLACE'
/// names the variant of all its runs. Without names, runs whose options differ in more than the
/// seed are of different variants. Errors: a place holds no run; there is one variant only; some
/// places have names and others have not.
result<run_versus> hold_against(const std::vector<std::string>& places);

std::string to_text(const run_versus& what);
std::string to_json(const run_versus& what);

} // namespace shoal::scenarios
