// The metrics of a run, each declared once: its column in metrics.csv, its name in the Prometheus
// exposition, its line in docs/metrics.md. Values are sampled at an interval of virtual time.
#pragma once

#include "kernels/base/units.hpp"
#include "scenarios/observe/run_directory.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace prometheus {
class Registry;
}

namespace shoal::scenarios {

/// In the order of the columns.
enum class metric : std::uint8_t {
  virtual_time,
  epoch,
  samples,
  samples_per_second,
  loss_train,
  loss_held_out,
  peers_alive,
  peers_in_sync,
  peers_joined,
  peers_left,
  rounds_ok,
  rounds_partial,
  rounds_split,
  rounds_failed,
  bytes_data,
  bytes_averaging,
  bytes_state,
  bytes_control,
  events,
  misbehaved,
  invariant_violations,
};

enum class metric_kind : std::uint8_t { counter, gauge };

struct metric_definition {
  metric id;
  std::string_view column;       ///< in metrics.csv
  std::string_view name;         ///< Prometheus
  std::string_view label, value; ///< its label, if it has one
  metric_kind kind;
  std::string_view unit;
  std::string_view help; ///< one sentence
};

std::span<const metric_definition> metric_definitions();

/// docs/metrics.md: all of them as a page.
std::string metrics_page();

/// The current values. A gauge that is not known (no loss yet) is empty in metrics.csv.
/// Thread safety: none, but for what prometheus-cpp gives scrapers of registry().
class metrics {
public:
  metrics();
  ~metrics();
  metrics(const metrics&) = delete;

  void set(metric which, std::optional<double> value);
  std::optional<double> get(metric which) const;

  /// 'time,epoch,…' and one row of values, each with its newline. Times have nine decimals; numbers
  /// are the shortest text that reads back as the same double.
  static std::string csv_header();
  std::string csv_row() const;

  /// The Prometheus text exposition.
  std::string exposition() const;
  const std::shared_ptr<prometheus::Registry>& registry() const noexcept { return registry_; }

private:
  struct handles;
  std::shared_ptr<prometheus::Registry> registry_;
  std::unique_ptr<handles> handles_;
};

} // namespace shoal::scenarios
