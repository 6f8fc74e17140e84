// summary.json: what a run came to, for programs; and the short table of it for people.
#pragma once

#include "kernels/base/result.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::scenarios {

/// What has no value in a run (no model, another world) is null in JSON. A number that is not
/// finite is null too.
struct summary {
  struct losses {
    std::optional<double> first, final, baseline, bigram;
    bool operator==(const losses&) const = default;
  };
  struct round_totals {
    std::uint64_t ok = 0, partial = 0, split = 0, failed = 0;
    std::map<std::string, std::uint64_t> by_reason;
    std::optional<double> mean_seconds; ///< of the rounds that somebody completed
    bool operator==(const round_totals&) const = default;
  };
  struct sent_bytes {
    std::uint64_t data = 0, averaging = 0, state = 0, control = 0;
    bool operator==(const sent_bytes&) const = default;
  };
  /// Compute steps that took longer than their profile; emulate only.
  struct late_totals {
    std::uint64_t late_steps = 0;
    double late_seconds = 0;
    bool operator==(const late_totals&) const = default;
  };
  /// Only where some peers are behind address translation.
  struct reach_totals {
    std::uint64_t open = 0, cone = 0, symmetric = 0, outbound_only = 0,
                  unknown = 0; ///< what peers last believed to be
    std::uint64_t right = 0,
                  wrong = 0; ///< beliefs as they came, held against what the scenario says
    std::uint64_t direct = 0, reversed = 0, punched = 0, relayed = 0; ///< connections opened
    std::uint64_t relayed_bytes = 0;
    std::uint64_t no_relay = 0, relay_spent = 0; ///< messages that reached nobody, by reason
    bool operator==(const reach_totals&) const = default;
  };
  struct peer_totals {
    std::uint64_t joined = 0, left = 0, alive = 0;
    bool operator==(const peer_totals&) const = default;
  };
  /// One virtual day; the last one may be shorter.
  struct day_totals {
    double peers = 0;             ///< there at a time, on average
    std::uint64_t epochs = 0;     ///< steps of the swarm
    std::uint64_t samples = 0;    ///< in completed rounds
    std::uint64_t bytes_sent = 0; ///< by all hosts
    bool operator==(const day_totals&) const = default;
  };
  struct check_totals {
    std::uint64_t checked = 0, violated = 0;
    std::string first_violation; ///< in JSON only if there is one
    bool operator==(const check_totals&) const = default;
  };

  std::string scenario;
  std::uint64_t seed = 0;
  std::string world;
  std::optional<std::string> event_hash, state_hash; ///< hexadecimal
  double virtual_seconds = 0, wall_seconds = 0;
  std::uint64_t peak_rss_bytes = 0;
  std::uint64_t epochs = 0;
  std::uint64_t samples = 0; ///< in completed rounds
  losses loss;
  round_totals rounds;
  sent_bytes bytes_sent;
  peer_totals peers;
  std::uint64_t faults_struck = 0; ///< hosts struck by faults, each time counted
  std::optional<reach_totals> reachability;
  std::optional<late_totals> distortion;
  std::vector<day_totals> days;                ///< only of runs that lasted longer than one
  std::optional<std::uint64_t> epochs_planned; ///< of these runs, if the scenario says it
  std::vector<std::pair<std::string, check_totals>> invariants; ///< in the order of rule_names

  bool operator==(const summary&) const = default;
  std::uint64_t violations() const noexcept;
};

/// Keys in the order above, two spaces of indentation, a newline at the end.
std::string to_json(const summary& what);
/// Errors: no JSON, a key missing or of another type; the message names it.
result<summary> summary_from_json(std::string_view text);

/// Metrics that a scenario's `expect` may name: paths of summary_number().
inline constexpr std::array<std::string_view, 11> judged_metrics{
    "loss.final", "loss.first",     "loss.baseline",  "peers_alive",
    "rounds.ok",  "rounds.partial", "rounds.split",   "rounds.failed",
    "epochs",     "samples",        "virtual_seconds"};

/// A number of summary.json by its path ('loss.final', 'rounds.by_reason.sender_lost',
/// 'invariants.same_bits.violated'); nothing if there is no such number. A reason that did not
/// occur is 0.
std::optional<double> summary_number(const summary& what, std::string_view path);

/// The table at the end of a run, for people.
std::string table(const summary& what);

/// The most memory that this process has used.
std::uint64_t peak_rss_bytes();

} // namespace shoal::scenarios
