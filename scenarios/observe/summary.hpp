// The outcome of a run: summary.json for programs, and a short table for people.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::scenarios {

/// The outcome of a run. A value that a run does not have (no model, another world) is null in
/// JSON. A number that is not finite is null too.
struct summary {
  struct losses {
    std::optional<double> first, final, baseline, bigram;
    bool operator==(const losses&) const = default;
  };
  struct round_totals {
    std::uint64_t ok = 0, partial = 0, split = 0, failed = 0;
    std::map<std::string, std::uint64_t> by_reason;
    /// The mean duration of the rounds that at least one member completed.
    std::optional<double> mean_seconds{};
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
  /// Present only where some peers are behind address translation.
  struct reach_totals {
    std::uint64_t open = 0, cone = 0, symmetric = 0, outbound_only = 0,
                  unknown = 0; ///< number of peers by their last belief
    std::uint64_t
        right = 0,
        wrong = 0; ///< beliefs that contradict the scenario, each counted when a peer forms it
    std::uint64_t direct = 0, reversed = 0, punched = 0, relayed = 0; ///< connections opened
    std::uint64_t relayed_bytes = 0;
    std::uint64_t no_relay = 0, relay_spent = 0; ///< undelivered messages, by reason
    bool operator==(const reach_totals&) const = default;
  };
  struct peer_totals {
    std::uint64_t joined = 0, left = 0, alive = 0;
    bool operator==(const peer_totals&) const = default;
  };
  /// One virtual day; the last one may be shorter.
  struct day_totals {
    double peers = 0;             ///< mean number of peers present
    std::uint64_t epochs = 0;     ///< steps of the swarm
    std::uint64_t samples = 0;    ///< samples in completed rounds
    std::uint64_t bytes_sent = 0; ///< bytes that all hosts sent
    bool operator==(const day_totals&) const = default;
  };
  /// Messages of a host that no correct host sends.
  struct accusation {
    std::string host; ///< empty: the sender is unknown
    std::string why;
    std::uint64_t times = 0, reporters = 0; ///< reporters: hosts that say so
    bool operator==(const accusation&) const = default;
  };
  /// Present only where rounds tolerate false values (`security.kind: btard`).
  struct security_totals {
    std::uint64_t attackers = 0;                           ///< hosts whose conduct is an attack
    std::uint64_t attackers_banned = 0, honest_banned = 0; ///< by at least one host
    std::optional<std::uint64_t> first_ban, last_ban;      ///< epochs of attackers' bans
    std::uint64_t audits = 0, passed = 0, wrong = 0;       ///< drawn, found right, found false
    std::uint64_t accusations = 0, verdicts = 0, missed_duties = 0;
    bool operator==(const security_totals&) const = default;
  };
  struct check_totals {
    std::uint64_t checked = 0, violated = 0;
    std::string first_violation; ///< in JSON only if there is a violation
    duration first_time{};       ///< time of that violation; not in JSON
    bool operator==(const check_totals&) const = default;
  };

  std::string scenario;
  std::uint64_t seed = 0;
  std::string world;
  std::optional<std::string> event_hash, state_hash; ///< hexadecimal
  double virtual_seconds = 0, wall_seconds = 0;
  std::uint64_t peak_rss_bytes = 0;
  std::uint64_t epochs = 0;
  std::vector<accusation> accusations; ///< the most reporters first
  std::uint64_t samples = 0;           ///< samples in completed rounds
  losses loss;
  round_totals rounds;
  sent_bytes bytes_sent;
  peer_totals peers;
  std::uint64_t faults_struck = 0; ///< hosts that faults struck; a host counts once for each time
  std::optional<reach_totals> reachability;
  std::optional<late_totals> distortion;
  std::optional<security_totals> security;
  std::vector<day_totals> days;                ///< only for runs of more than one day
  std::optional<std::uint64_t> epochs_planned; ///< epochs of such a run, if the scenario plans them
  std::vector<std::pair<std::string, check_totals>> invariants; ///< in the order of rule_names

  bool operator==(const summary&) const = default;
  std::uint64_t violations() const noexcept;
};

/// Keys in the order above, two spaces of indentation, a newline at the end.
std::string to_json(const summary& what);
/// Errors: the text is no JSON; a key is missing or of another type. The message names the key.
result<summary> summary_from_json(std::string_view text);

/// Metrics that a scenario's `expect` may name: paths of summary_number().
inline constexpr std::array<std::string_view, 14> judged_metrics{"loss.final",
                                                                 "loss.first",
                                                                 "loss.baseline",
                                                                 "peers_alive",
                                                                 "rounds.ok",
                                                                 "rounds.partial",
                                                                 "rounds.split",
                                                                 "rounds.failed",
                                                                 "epochs",
                                                                 "samples",
                                                                 "virtual_seconds",
                                                                 "security.attackers_banned",
                                                                 "security.honest_banned",
                                                                 "security.last_ban"};

/// A number of summary.json by its path ('loss.final', 'rounds.by_reason.sender_lost',
/// 'invariants.same_bits.violated'). Empty if there is no such number. A reason that did not occur
/// counts 0.
std::optional<double> summary_number(const summary& what, std::string_view path);

/// The table at the end of a run, for people.
std::string table(const summary& what);

/// The peak resident memory of this process, in bytes.
std::uint64_t peak_rss_bytes();

} // namespace shoal::scenarios
