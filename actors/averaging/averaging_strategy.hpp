// An averaging strategy says how a swarm comes to the mean of its values. It names the actor of a
// peer, the partners of each round, and the figures that theory expects. Studies of averaging
// (scenarios/bench/averaging.hpp) compare strategies.
//
// A strategy by groups has a plan. The plan divides the peers into groups for each round, and the
// members of a group exchange values by an all-reduce (strategies/group_averager.hpp). A strategy
// without a plan has an actor that chooses its partners itself.
//
// To add a strategy, make a definition in a file of actors/averaging/strategies, and name it in
// averaging_strategies.cpp. A program outside of the tree calls averaging_strategies().add() when
// it starts. `averaging_study.strategies` in a scenario and `shoal bench averaging --strategy`
// accept its name then.
#pragma once

#include "kernels/base/definition_list.hpp"
#include "kernels/mixing.hpp"

#include <caf/actor.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

class host;
struct averager_config; // actors/averaging/averager.hpp

/// The swarm that a strategy is run with.
struct averaging_swarm {
  std::size_t peers = 0;
  kernels::grid grid;          ///< option of strategies with `uses_grid`
  std::size_t group_size = 32; ///< option of strategies with `uses_group_size`
  double failure = 0;          ///< probability that a peer is away in a round
  std::uint64_t seed = 1;      ///< seeds all streams
};

/// Returns the number of each peer's group in round `t`. Requires: calls with t = 1, 2, 3, ...
using meeting_plan = std::function<std::vector<std::uint32_t>(unsigned t)>;

/// The number of rounds that a strategy needs: its expected value and its standard deviation.
struct expected_rounds {
  double mean = 0, deviation = 0;
};

struct averaging_strategy {
  std::string name;    ///< as scenarios write it
  std::string meaning; ///< for the reference page, one line without its full stop

  /// Spawns the actor of one peer, usually with spawn_averager.
  std::function<caf::actor(caf::actor_system&, host&, const averager_config&)> spawn;

  /// Makes the plan of a restart. Empty: the strategy is not by groups.
  std::function<meeting_plan(const averaging_swarm&, unsigned restart)> plan;
  /// The number of members that a group of the plan has at most. Requires: a plan.
  std::function<std::size_t(const averaging_swarm&)> largest_group;
  /// The index of the only peer that reduces; none: all members of a group do. A group without that
  /// peer averages nothing in a round.
  std::optional<std::uint32_t> server;
  /// A group in which a member is missing averages nothing in a round. Requires: groups of
  /// `largest_group` members.
  bool needs_everybody = false;
  /// Options of the study that the strategy reads.
  bool uses_grid = false, uses_group_size = false;

  /// The expected distortion after `t` rounds, of the initial one; nothing where no closed form is
  /// known. `done` is how many rounds all peers together have completed by then, if each round of
  /// the study had as many. May be empty.
  std::function<std::optional<double>(const averaging_swarm&, std::uint64_t t, double done)> theory;
  /// The rounds until the distortion is zero, if each restart ends after `limit` rounds. May be
  /// empty.
  std::function<expected_rounds(const averaging_swarm&, double limit)> rounds;

  bool by_groups() const noexcept { return plan != nullptr; }
};

/// All strategies of this program; the first one is the default.
definition_list<averaging_strategy>& averaging_strategies();

} // namespace shoal::actors
