// The metrics of a run. Each metric is declared once, with its column in metrics.csv, its name in
// the Prometheus exposition and its line in docs/metrics.md. Values are sampled at an interval of
// virtual time. The catalogue is the same in every world; a metric that a world does not have has
// no series there. No label names a peer: a run may have a million peers.
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

/// The order is that of the columns.
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
  // The metrics below have no column.
  received_data,
  received_averaging,
  received_state,
  received_control,
  links_open,
  links_lost,
  held_back,
  bulk_window,
};

/// Counters with a label. The label's values are from closed lists.
enum class metric_by_label : std::uint8_t { rounds, handshakes_refused, frames_refused, points };

enum class metric_kind : std::uint8_t { counter, gauge };

struct metric_definition {
  metric id;
  /// Column in metrics.csv. Empty: only for Prometheus, and without a series until the first value.
  std::string_view column;
  std::string_view name;         ///< name in Prometheus
  std::string_view label, value; ///< the metric's label, if it has one
  metric_kind kind;
  std::string_view unit;
  std::string_view help; ///< one sentence
};

std::span<const metric_definition> metric_definitions();

/// The counters of the network between real hosts. By traffic class: data, averaging, state,
/// control.
struct wire_counts {
  std::array<std::uint64_t, 4> received_bytes{};
  std::uint64_t links_open = 0;
  std::uint64_t links_lost = 0;
  std::uint64_t held_back = 0;
  std::uint64_t bulk_window_bytes = 0; ///< bytes that arrived and are not handled yet
  /// Counts by reason, from closed lists.
  std::vector<std::pair<std::string_view, std::uint64_t>> handshakes_refused{}, frames_refused{};
};

/// The text of docs/metrics.md, which lists all metrics.
std::string metrics_page();

/// The current values. A gauge without a value (no loss yet) is empty in metrics.csv.
/// Thread safety: none, except that scrapers of registry() may read at any time.
class metrics {
public:
  metrics();
  ~metrics();
  metrics(const metrics&) = delete;

  void set(metric which, std::optional<double> value);
  std::optional<double> get(metric which) const;
  /// Sets a labelled counter. Requires: `value` of the label is from a closed list, never text from
  /// a peer.
  void set(metric_by_label which, std::string_view value, std::uint64_t count);
  void set(const wire_counts& counts);
  /// Counts a round that at least one member completed.
  void add_round(double seconds);

  /// The header 'time,epoch,…' with its newline; csv_row() is a row of values. Times have nine
  /// decimals. A number is the shortest text that reads back as the same double.
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
