// The options of `averaging_study`; included by describe.hpp, which says what describe() is.
#pragma once

#include "scenarios/schema/averaging_study.hpp"
#include "scenarios/schema/rule.hpp"

#include <array>

namespace shoal::scenarios {

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
  v.field("grid", o.grid, "of strategies on a grid, like 32x32 or 8x8x8",
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
  v.field("groups", o.groups,
          "`dht`: groups find together in it, up to 16384 peers; `given`: they are told");
  v.field("delay", o.delay, "between two peers, one way");
  v.field("rate", o.rate, "of each line, both ways", {.above = 0});
  v.field("expect", o.expect, "how many rounds it takes: a study that misses one fails");
}

} // namespace shoal::scenarios
