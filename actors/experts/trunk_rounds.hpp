// The trunks of a mixture's trainers, averaged in small groups: the rows of a grid, as in Moshpit
// SGD. Each `every` of the swarm's time is a round. A trainer computes on meanwhile. With x0 its
// trunk when the round began and A the average, its new trunk is A + (x - x0): the delta rule.
//
// A group closes when it has as many members as a row has cells, or after a wait that adapts to
// earlier groups. Trainers have the same weight. Their optimizers' states stay their own.
// Source: Ryabinin et al., "Moshpit SGD", arXiv:2103.03239, algorithms 1 and 2.
#pragma once

#include "actors/averaging/deadline.hpp"
#include "actors/averaging/failing_members.hpp"
#include "actors/averaging/moshpit_place.hpp"
#include "actors/averaging/round.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace shoal::actors {

class host;

struct trunk_rounds_config {
  kernels::grid grid;
  averaging_config averaging;
  round_codecs codecs;
};

class trunk_rounds {
public:
  using trunk = std::shared_ptr<const std::vector<float>>;

  /// `every`: above 0.
  trunk_rounds(trunk_rounds_config how, duration every, rng draws);

  const averaging_config& averaging() const noexcept { return how_.averaging; }
  /// The time until the next round begins. `utc_ns`: the clock of this host.
  duration until_next(std::int64_t utc_ns) const;
  /// Begins the round that is under way by this host's clock, and makes this trainer's
  /// contribution. Observers see `epoch`. Requires: this trainer is in no round.
  round_request begin(const host& here, trunk now, std::uint64_t epoch, caf::actor dht);
  bool running() const noexcept { return contributed_ != nullptr; }
  /// The trunk after the round; nothing if the round has failed.
  std::optional<std::vector<float>> end(const round_result& result, const std::vector<float>& now);

private:
  trunk_rounds_config how_;
  std::int64_t every_ns_;
  moshpit_place place_;
  adaptive_deadline gathering_;
  failing_members failing_;
  trunk contributed_; // to the round under way
};

} // namespace shoal::actors
