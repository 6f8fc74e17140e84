// The interface through which a run reports its progress to a display. A listener hears the lines
// and facts of the run directory as they arise. The directory's files hold the same facts
// afterwards (scenarios/page/run_reader.hpp), so that a page shows the same numbers live and later.
// Thread safety: as run_observers. Calls come one at a time, in the order of time, except for the
// ends of transfers and rounds.
#pragma once

#include "kernels/base/units.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shoal::scenarios {

/// A bulk transfer that ended.
struct heard_transfer {
  std::uint64_t number = 0;
  std::string_view from, to; ///< host names like 'home-3'
  std::string_view type;
  std::uint64_t bytes = 0;
  duration sent{}, begun{}, left{}, arrives{};
  bool cut = false;
  std::string_view held_back_by; ///< the longest limit, like 'uplink of home-3', 'slow start'
  duration held_back{};          ///< for how long this limit held
};

/// How one member's round ended, as that member sees it.
struct heard_end {
  std::string_view host;
  std::string_view group; ///< 32 hexadecimal digits; only zeros if no group formed
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

/// The bytes that one host sent to the hosts of one region, by class: data, averaging, state,
/// control. In a run without regions: the bytes to all hosts.
struct sent_bytes {
  std::string_view host, region, to_region;
  std::array<std::uint64_t, 4> bytes{};
};

/// News of one expert of a mixture.
struct heard_expert {
  enum class news : std::uint8_t {
    held,     ///< the host holds it from now on
    given_up, ///< the host holds it no more
    computed, ///< the host has computed a batch
    copied,   ///< other hosts get a copy
  };
  news what = news::held;
  std::string_view host;
  std::string_view expert;              ///< the layer and the place, like '0.14.3'
  std::uint64_t steps = 0;              ///< that it has made; of a copy: when the copy was made
  bool revived = false;                 ///< held: from a copy of a host that is gone
  std::uint64_t requests = 0, rows = 0; ///< in a batch
};

/// The load of a host of a pipeline. It computed for `computed` of the time `over` until now.
struct heard_work {
  std::string_view host;
  std::uint32_t stage = 0;
  duration over{}, computed{};
};

struct case_event;
struct guarded_round;

class run_listener {
public:
  virtual ~run_listener() = default;

  /// The text of run.yaml. Called once before all other calls, and again at the end with facts
  /// that are known only then.
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
  /// A host's contribution to a completed round. `loss`: mean loss of the samples that the host
  /// computed for this round; not finite if unknown.
  virtual void contribution(duration time, std::string_view host, std::uint64_t samples,
                            double loss) = 0;
  virtual void fault(duration time, std::uint64_t number, std::string_view action, bool begins,
                     std::span<const std::string> hosts) = 0;
  /// Something new is known against a member.
  virtual void case_event(const scenarios::case_event& what) = 0;
  /// More is known about a Byzantine-tolerant round. It replaces what an earlier call told.
  virtual void guarded_round(const scenarios::guarded_round& what) = 0;
  /// The host holds this stage of a pipeline from now on. Empty: it leaves its stage for another.
  virtual void stage_held(duration time, std::string_view host,
                          std::optional<std::uint32_t> stage) = 0;
  virtual void stage_worked(duration time, const heard_work& what) = 0;
  /// Something has happened to an expert of a mixture.
  virtual void expert(duration time, const heard_expert& what) = 0;
  virtual void transfer(const heard_transfer& what) = 0;
  /// Whether the listener wants the bytes that hosts sent so far, which take time to collect.
  /// Called at each row of metrics. At the end traffic() is called in any case.
  virtual bool wants_traffic() = 0;
  /// All traffic so far. It replaces what an earlier call told.
  virtual void traffic(std::span<const sent_bytes> all) = 0;
  /// The run is over: the text of summary.json.
  virtual void ended(std::string_view summary) = 0;
};

/// Hears nothing, for listeners of a few facts. A listener that passes all facts on derives from
/// run_listener, so that it cannot miss a new one.
class silent_listener : public run_listener {
public:
  void begun(std::string_view) override {}
  void metrics_row(std::string_view) override {}
  void epoch_rows(std::string_view) override {}
  void host_started(duration, std::string_view) override {}
  void host_ended(duration, std::string_view, std::string_view) override {}
  void phase(duration, std::string_view, std::string_view) override {}
  void round_ended(duration, const heard_end&) override {}
  void round(const heard_round&) override {}
  void contribution(duration, std::string_view, std::uint64_t, double) override {}
  void fault(duration, std::uint64_t, std::string_view, bool,
             std::span<const std::string>) override {}
  void case_event(const scenarios::case_event&) override {}
  void guarded_round(const scenarios::guarded_round&) override {}
  void stage_held(duration, std::string_view, std::optional<std::uint32_t>) override {}
  void stage_worked(duration, const heard_work&) override {}
  void expert(duration, const heard_expert&) override {}
  void transfer(const heard_transfer&) override {}
  bool wants_traffic() override { return false; }
  void traffic(std::span<const sent_bytes>) override {}
  void ended(std::string_view) override {}
};

} // namespace shoal::scenarios
