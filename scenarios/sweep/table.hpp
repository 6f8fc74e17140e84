// What a sweep comes to: for each point and metric the mean over its seeds with a 95 % confidence
// interval by Student's t,
//   mean +- t(0.975, n - 1) s / sqrt(n),   s^2 = sum (x - mean)^2 / (n - 1)
// which supposes that runs with different seeds are independent and their mean is about normal.
// Only what the runs came to goes in, in the order of the plan: neither the order in which they
// ended nor how long they took.
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
  std::size_t n = 0; ///< runs that have the metric, > 0
  double mean = 0;
  std::optional<double> half_width; ///< of the confidence interval; nothing of a single run
  double least = 0, most = 0;
  bool operator==(const estimate&) const = default;
};

/// Requires: values not empty.
estimate estimate_of(const std::vector<double>& values);

/// Metrics that a sweep knows by name. Beside numbers of summary.json: samples_per_second (samples
/// / virtual_seconds) and bytes_sent.total. Those below rounds.by_reason are known, too.
std::vector<std::string> sweep_metrics();
/// Whether the name is one.
bool is_sweep_metric(std::string_view name);
/// Nothing if the run has no such number.
std::optional<double> sweep_number(const summary& of, std::string_view metric);

struct sweep_row {
  std::size_t point = 0;
  std::size_t runs = 0;                         ///< finished
  std::vector<std::optional<estimate>> metrics; ///< by the table's metrics
};

struct sweep_table {
  std::vector<std::string> metrics;
  std::vector<sweep_row> rows; ///< one for each point
  /// By cell, then by metric; empty: the cell is not there.
  std::vector<std::vector<std::optional<double>>> cells;
};

/// Of the cells that are finished in `directory`. Without metrics of the plan the usual ones that
/// at least one run has. Errors: a summary.json that cannot be read.
result<sweep_table> make_table(const sweep_plan& plan, const std::filesystem::path& directory);

/// '1.234 ± 0.05'; bytes with their unit. '-' for nothing.
std::string estimate_text(std::string_view metric, const std::optional<estimate>& what);
/// A number as it stands in a cell of the table.
std::string metric_text(std::string_view metric, double value);

/// For a terminal: below each other as many metrics at a time as `columns` hold.
std::string table_text(const sweep_plan& plan, const sweep_table& table, std::size_t columns);
std::string table_markdown(const sweep_plan& plan, const sweep_table& table);
/// Of each metric the mean, the half-width, the least and the most.
std::string table_csv(const sweep_plan& plan, const sweep_table& table);
/// A line for each finished cell.
std::string cells_csv(const sweep_plan& plan, const sweep_table& table);
std::string table_json(const sweep_plan& plan, const sweep_table& table);

} // namespace shoal::scenarios
