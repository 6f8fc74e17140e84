// The report of one process of a cluster about itself, which `shoal status` asks for. The process
// collects it from the observations of its own actors.
#pragma once

#include "actors/reasons.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"
#include "scenarios/observe/rounds.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::scenarios {

struct node_report {
  struct round {
    std::uint64_t epoch = 0, members = 0;
    std::string outcome, reason; ///< names of actors/reasons.hpp
    double seconds = 0;          ///< duration of the round
    double ago_seconds = 0;      ///< time since the round ended
    bool operator==(const round&) const = default;
  };
  struct neighbour {
    std::string name, address; ///< the address is empty if the host cannot be dialled
    std::string relay;         ///< the host that relays messages between the two; empty: none
    std::optional<double> round_trip_seconds; ///< recent round-trip time of small frames
    double sends_bits_per_second = 0, receives_bits_per_second = 0; ///< over the last minute
    bool operator==(const neighbour&) const = default;
  };

  struct ban {
    std::string member; ///< the member's id, in hexadecimal digits
    std::string name;   ///< the member's name; empty if the process does not know it
    std::string why;    ///< 'two votes in one round'
    std::string since;  ///< UTC, as '2026-11-21T21:00:00Z'
    std::string line;   ///< the proof, which 'shoal keys revoke --evidence' takes
    bool operator==(const ban&) const = default;
  };

  std::string name, scenario, version;
  std::string role; ///< trainer, auxiliary or shard
  /// joining, computing, averaging, downloading, gone; for a shard: serving or following
  std::string phase;
  bool leaving = false;
  double up_seconds = 0;
  std::uint64_t epoch = 0, epochs_planned =
                               0; ///< 0 planned epochs: only the scenario's stop_time ends the run
  std::uint64_t samples = 0;      ///< samples computed since the process started
  double samples_per_second = 0;  ///< over the last minute
  std::optional<double> train_loss, held_out_loss;
  std::uint64_t bytes_sent = 0, violations = 0;
  std::map<std::string, std::uint64_t> rounds_by_outcome, rounds_by_reason;
  std::vector<round> last_rounds; ///< the newest first
  std::vector<neighbour> neighbours;
  std::vector<ban> bans; ///< the members that the process has banned
  /// The process's own signed contribution.txt; empty without keys, or before the first one.
  std::string contribution;
  bool operator==(const node_report&) const = default;
};

std::string to_json(const node_report& what);
/// Errors: the text is no JSON; a key is missing or of another type.
result<node_report> node_report_from_json(std::string_view text);

/// Collects the facts of a node_report. Thread safety: none. Memory: bounded.
class node_facts {
public:
  void observe(duration now, const actors::observation& what);
  /// Fills in phase, epoch, samples and rounds, as far as they are known.
  void fill(duration now, node_report& into) const;

private:
  static constexpr duration window = std::chrono::minutes(1);
  static constexpr std::size_t most_rounds = 8;
  struct ended_round {
    std::uint64_t epoch = 0, members = 0;
    actors::outcome outcome = actors::outcome::failed;
    actors::reason reason = actors::reason::none;
    duration started{}, ended{};
  };

  actors::peer_phase phase_ = actors::peer_phase::joining;
  std::uint64_t epoch_ = 0, samples_ = 0;
  std::deque<std::pair<duration, std::uint64_t>> computed_; // samples computed in the last minute
  std::deque<ended_round> rounds_;                          // the newest last
};

} // namespace shoal::scenarios
