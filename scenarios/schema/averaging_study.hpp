// The section `averaging_study` of a scenario file: peers that do nothing but average, by several
// strategies and at several rates of failure, and what is expected of them. A file has either such
// a study or a training run.
#pragma once

#include "kernels/base/units.hpp"
#include "kernels/mixing.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// The names of actors::averaging_strategies(), separated by ", ", and the first one of them.
const char* strategy_names();
const std::string& standard_strategy();
/// The meaning of `strategies` for the reference page: that of each strategy.
const char* strategies_meaning();

/// How peers learn whom they average with.
enum class group_assignment : std::uint8_t {
  dht,   ///< by matchmaking through a DHT node on each host
  given, ///< they are told; nothing else differs
};

constexpr std::uint64_t most_study_peers = 4'194'304;
constexpr std::uint64_t most_study_peers_with_dht =
    16'384; ///< tables and records of more do not fit in one process
constexpr std::uint64_t most_study_cells = 16'777'216;
/// Rounds end when the distortion is below this share of the initial one.
constexpr double study_stops_at = 1e-9;

/// How many rounds a strategy should need.
struct study_expectation {
  std::string strategy;          ///< required
  double failure = 0;            ///< one of the study's
  double below = study_stops_at; ///< relative distortion to be reached
  std::optional<double>
      rounds; ///< mean over the restarts; none: the closed form, if the strategy has one
  std::optional<double>
      within; ///< of that; none: 0.5, and of the closed form three standard errors
  bool operator==(const study_expectation&) const = default;
};

struct averaging_study {
  std::vector<std::string> strategies{standard_strategy()};
  std::uint64_t peers = 0;           ///< required
  kernels::grid grid{0, 0};          ///< default: the smallest square that holds all peers
  std::uint64_t group = 32;          ///< size of groups, where a strategy leaves it open
  std::vector<double> failures{0.0}; ///< probabilities that a peer is away in a round
  std::uint64_t rounds = 50;         ///< at most
  std::uint64_t at_least = 0;        ///< rounds even if the distortion is small
  std::uint64_t vector = 32;         ///< values of each peer
  std::uint64_t restarts = 1;
  group_assignment groups = group_assignment::dht;
  duration delay = std::chrono::milliseconds(50); ///< between two peers, one way
  data_rate rate{100e6};                          ///< of each line, both ways
  std::vector<study_expectation> expect;
  bool operator==(const averaging_study&) const = default;
};

} // namespace shoal::scenarios
