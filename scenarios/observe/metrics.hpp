// The metrics of a run, each declared once: its column in metrics.csv, its name in the Prometheus
// exposition, its line in docs/metrics.md. Values are sampled at an interval of virtual time. The
// catalogue is the same in every world; what a world does not have has no series there. No label
// names a peer: there may be a million of them.
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
#include <utility>
#include <vector>

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
  // From here on without a column.
  received_data,
  received_averaging,
  received_state,
  received_control,
  links_open,
  links_lost,
  held_back,
  bulk_window,
};

/// Counters with a label whose values are from closed lists.
enum class metric_by_label : std::uint8_t { rounds, handshakes_refused, frames_refused, points };

enum class metric_kind : std::uint8_t { counter, gauge };

struct metric_definition {
  metric id;
  std::string_view column; ///< in metrics.csv; empty: only for Prometheus, and without a series
                           ///< until there is a value
  std::string_view name;   ///< Prometheus
  std::string_view label, value; ///< its label, if it has one
  metric_kind kind;
  std::string_view unit;
  std::string_view help; ///< one sentence
};

std::span<const metric_definition> metric_definitions();

/// What the network between real hosts counts about itself. By traffic class: data, averaging,
/// state, control.
struct wire_counts {
  std::array<std::uint64_t, 4> received_bytes{};
  std::uint64_t links_open = 0;
  std::uint64_t links_lost = 0;
  std::uint64_t held_back = 0;
  std::uint64_t bulk_window_bytes = 0; ///< that came and are not handled yet
  /// By reason, from closed lists.
  std::vector<std::pair<std::string_view, std::uint64_t>> handshakes_refused{}, frames_refused{};
};

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
  /// How often it happened so far. Requires: `value` of the label is from a closed list, never what
  /// a peer said.
  void set(metric_by_label which, std::string_view value, std::uint64_t count);
  void set(const wire_counts& counts);
  /// A round ended that somebody completed.
  void add_round(double seconds);

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
