// The table of a sweep. For each point and metric it has the mean over the seeds, with a 95 %
// confidence interval by Student's t:
//   mean +- t(0.975, n - 1) s / sqrt(n),   s^2 = sum (x - mean)^2 / (n - 1)
// The interval assumes that runs with different seeds are independent and that their mean is about
// normal. The table depends on the results of the runs alone. It keeps the order of the plan,
// whatever the order in which the runs ended.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/sweep/plan.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

struct estimate {
  std::size_t n = 0; ///< runs that have the metric, at least 1
  double mean = 0;
  std::optional<double> half_width; ///< half of the confidence interval; empty for a single run
  double least = 0, most = 0;
  bool operator==(const estimate&) const = default;
};

/// Requires: `values` is not empty.
estimate estimate_of(const std::vector<double>& values);

/// Returns the names of the metrics of a sweep: numbers of summary.json, samples_per_second
/// (samples / virtual_seconds) and bytes_sent.total. Names below rounds.by_reason are metrics, too.
std::vector<std::string> sweep_metrics();
/// Returns whether `name` is a metric of a sweep.
bool is_sweep_metric(std::string_view name);
/// Returns the metric of one run, or nothing when the run does not have it.
std::optional<double> sweep_number(const summary& of, std::string_view metric);

struct sweep_row {
  std::size_t point = 0;
  std::size_t runs = 0;                         ///< finished runs
  std::vector<std::optional<estimate>> metrics; ///< in the order of the table's metrics
};

struct sweep_table {
  std::vector<std::string> metrics;
  std::vector<sweep_row> rows; ///< one for each point
  /// Indexed by cell, then by metric. The entry of an unfinished cell is empty.
  std::vector<std::vector<std::optional<double>>> cells;
};

/// Makes the table of the cells that are finished in `directory`. A plan without metrics gets the
/// default ones that at least one run has. Errors: a summary.json cannot be read.
result<sweep_table> make_table(const sweep_plan& plan, const std::filesystem::path& directory);

/// Returns '1.234 ± 0.05', with a unit for bytes, or '-' without an estimate.
std::string estimate_text(std::string_view metric, const std::optional<estimate>& what);
/// Returns a number in the form that a cell of the table has.
std::string metric_text(std::string_view metric, double value);

/// Returns the table for a terminal of `columns` columns, in blocks of as many metrics as fit.
std::string table_text(const sweep_plan& plan, const sweep_table& table, std::size_t columns);
std::string table_markdown(const sweep_plan& plan, const sweep_table& table);
/// Returns a CSV file with the mean, half-width, least and largest value of each metric.
std::string table_csv(const sweep_plan& plan, const sweep_table& table);
/// Returns a CSV file with one line for each finished cell.
std::string cells_csv(const sweep_plan& plan, const sweep_table& table);
std::string table_json(const sweep_plan& plan, const sweep_table& table);

} // namespace shoal::scenarios
