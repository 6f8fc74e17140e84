// The options of the program 'averaging_study', which are the section `averaging_study` of a
// scenario file. In a study peers only average, by several strategies and at several rates of
// failure. scenarios/schema/describe.hpp explains describe().
#pragma once

#include "kernels/base/units.hpp"
#include "kernels/mixing.hpp"
#include "scenarios/schema/rule.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// The names of actors::averaging_strategies(), separated by ", ", and the first one of them.
const char* strategy_names();
/// The names of actors::aggregators(), separated by ", ".
const char* aggregator_names();
const std::string& standard_strategy();
/// The meaning of `strategies` for the reference page: that of each strategy.
const char* strategies_meaning();

/// How peers get their groups.
enum class group_assignment : std::uint8_t {
  dht,   ///< by matchmaking through a DHT node on each host
  given, ///< the bench tells each peer its group; nothing else differs
};

constexpr std::uint64_t most_study_peers = 4'194'304;
constexpr std::uint64_t most_study_peers_with_dht =
    16'384; ///< tables and records of more do not fit in one process
constexpr std::uint64_t most_study_cells = 16'777'216;
/// Rounds end when the distortion is below this share of the initial one.
constexpr double study_stops_at = 1e-9;

/// The number of rounds that a strategy should need.
struct study_expectation {
  std::string strategy;          ///< required
  double failure = 0;            ///< one of the study's
  double below = study_stops_at; ///< relative distortion to be reached
  /// Mean over the restarts; none: the closed form, if the strategy has one.
  std::optional<double> rounds;
  /// Largest allowed distance to `rounds`; none: 0.5, or three standard errors of the closed form.
  std::optional<double> within;
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
  std::string aggregator = "mean"; ///< the groups' method, with standard options
  group_assignment groups = group_assignment::dht;
  duration delay = std::chrono::milliseconds(50); ///< between two peers, one way
  data_rate rate{100e6};                          ///< rate of each line, both ways
  std::vector<study_expectation> expect;
  bool operator==(const averaging_study&) const = default;
};

constexpr auto names_of(group_assignment) {
  return std::array{enum_name<group_assignment>{group_assignment::dht, "dht"},
                    enum_name<group_assignment>{group_assignment::given, "given"}};
}

template <class V>
void describe(V& v, study_expectation& o) {
  v.field("strategy", o.strategy, "one of the study's",
          {.required = true, .one_of = strategy_names()});
  v.field("failure", o.failure, "one of the study's `failures`",
          {.at_least = 0, .below = 1, .fraction = true});
  v.field("below", o.below, "the distortion that is to be reached, of the initial one",
          {.at_least = study_stops_at, .below = 1});
  v.field(
      "rounds", o.rounds,
      "how many it takes, mean of the restarts; default: the closed form, if the strategy has one",
      {.at_least = 0});
  v.field("within", o.within,
          "so far from that at most; default: 0.5, or three standard errors of the closed form",
          {.at_least = 0});
}

template <class V>
void describe(V& v, averaging_study& o) {
  v.field("strategies", o.strategies, strategies_meaning(), {.one_of = strategy_names()});
  v.field("peers", o.peers, "how many",
          {.required = true, .at_least = 2, .at_most = static_cast<double>(most_study_peers)});
  v.field("grid", o.grid, "the grid, for strategies that use one, like 32x32 or 8x8x8",
          {.otherwise = "the smallest square that holds all peers"});
  v.field("group", o.group, "size of groups, of strategies that leave it open",
          {.at_least = 2, .at_most = static_cast<double>(most_study_peers)});
  v.field("failures", o.failures, "probabilities that a peer is away in a round; each is a table",
          {.at_least = 0, .below = 1, .fraction = true});
  v.field("rounds", o.rounds,
          "at most so many; fewer once the distortion is below 1e-9 of the initial one",
          {.at_least = 1, .at_most = 1e6});
  v.field("at_least", o.at_least, "but so many in any case",
          {.at_most = 1e6, .hide_default = true});
  v.field("vector", o.vector, "values of each peer, standard normal at first",
          {.at_least = 1, .at_most = 1e9});
  v.field("restarts", o.restarts, "repetitions with other values, places and failures",
          {.at_least = 1, .at_most = 1e6});
  v.field("aggregator", o.aggregator,
          "how reducers of groups combine contributions, with standard options; closed forms are "
          "those of `mean`",
          {.hide_default = true, .one_of = aggregator_names()});
  v.field("groups", o.groups,
          "`dht`: groups find together in it, up to 16384 peers; `given`: they are told");
  v.field("delay", o.delay, "between two peers, one way");
  v.field("rate", o.rate, "the rate of each line, both ways", {.above = 0});
  v.field("expect", o.expect, "how many rounds it takes: a study that misses one fails");
}

} // namespace shoal::scenarios
