// What a run tells whoever shows it: the lines and facts that the run directory gets, as they
// arise. The directory's files say the same afterwards (scenarios/page/run_reader.hpp), so that a
// page shows the same numbers live and later. Thread safety: as run_observers; calls come one at a
// time, in the order of time but for the ends of transfers and rounds.
#pragma once

#include "kernels/base/units.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shoal::scenarios {

/// A transfer of bulk that ended.
struct heard_transfer {
  std::uint64_t number = 0;
  std::string_view from, to; ///< hosts: 'home-3'
  std::string_view type;
  std::uint64_t bytes = 0;
  duration sent{}, begun{}, left{}, arrives{};
  bool cut = false;
  std::string_view
      held_back_by;     ///< what limited it for longest, in words: 'uplink of home-3', 'slow start'
  duration held_back{}; ///< for how long
};

/// How one member's round ended, as that member sees it.
struct heard_end {
  std::string_view host;
  std::string_view group; ///< 32 hexadecimal digits; only zeros if none formed
  std::uint64_t epoch = 0;
  std::string_view outcome, reason;
};

/// A whole round that is final.
struct heard_round {
  std::string_view group;
  std::uint64_t epoch = 0;
  duration started{}, ended{};
  std::uint64_t members = 0;
  std::string_view outcome, reason;
  bool first_of_two = false;
  std::uint64_t samples = 0;
};

/// What one host sent to the hosts of one region, by class: data, averaging, state, control.
/// Without regions: to all of them.
struct sent_bytes {
  std::string_view host, region, to_region;
  std::array<std::uint64_t, 4> bytes{};
};

class run_listener {
public:
  virtual ~run_listener() = default;

  /// The text of run.yaml. Once before everything else, and again at the end with what is known
  /// only then.
  virtual void begun(std::string_view run_yaml) = 0;
  /// A row of metrics.csv, in the order of metric_definitions(), with its newline.
  virtual void metrics_row(std::string_view row) = 0;
  /// Rows of epochs.csv, each with its newline.
  virtual void epoch_rows(std::string_view rows) = 0;
  virtual void host_started(duration time, std::string_view host) = 0;
  virtual void host_ended(duration time, std::string_view host, std::string_view reason) = 0;
  virtual void phase(duration time, std::string_view host, std::string_view phase) = 0;
  virtual void round_ended(duration time, const heard_end& what) = 0;
  virtual void round(const heard_round& what) = 0;
  /// What a host brought to a round that somebody completed; `loss` of what it computed for it, not
  /// finite if that is not known.
  virtual void contribution(duration time, std::string_view host, std::uint64_t samples,
                            double loss) = 0;
  virtual void fault(duration time, std::uint64_t number, std::string_view action, bool begins,
                     std::span<const std::string> hosts) = 0;
  virtual void transfer(const heard_transfer& what) = 0;
  /// Whether it wants the bytes that hosts sent so far, which takes time to tell. Asked at each row
  /// of metrics; at the end they are told anyway.
  virtual bool wants_traffic() = 0;
  /// All of them, after which what was told before is void.
  virtual void traffic(std::span<const sent_bytes> all) = 0;
  /// The run is over: the text of summary.json.
  virtual void ended(std::string_view summary) = 0;
};

} // namespace shoal::scenarios
