// Follows which layers the living servers of a swarm hold. It counts moves that took the last
// server of a layer away, and measures how near the weakest layer comes to a bound.
//   bound = sum of the servers' rates through one layer / layers
// No placement reaches more, because a server that holds n layers gives each of them its rate / n.
#pragma once

#include "actors/inference/placement.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace shoal::scenarios {

class placement_watch {
public:
  /// A model of `layers` layers. A server that dies at most `excuse` before a move may have
  /// promised to stay. So the loss of its layers is no fault of the move.
  placement_watch(std::uint32_t layers, duration excuse) : layers_(layers), excuse_(excuse) {}

  /// A server holds `layers` from now on, in the place of those before.
  void taken(std::uint64_t server, actors::layer_span layers, double speed, duration now);
  void died(std::uint64_t server, duration now);

  /// The living servers.
  std::vector<actors::placed_server> servers() const;
  std::uint64_t moves() const noexcept { return moves_; }
  /// Layers that lost their last server by a move.
  std::uint64_t cut() const noexcept { return cut_; }
  /// The weakest layer's rate of the bound, as a mean over the time since `from`. 0 if no time has
  /// passed. The clock starts with the first call.
  double mean(duration from, duration now);

private:
  void advance(duration now);
  bool is_held(std::uint32_t layer) const;

  std::uint32_t layers_;
  duration excuse_;
  std::map<std::uint64_t, actors::placed_server> servers_;
  struct death {
    duration when{};
    actors::layer_span layers;
  };
  std::vector<death> deaths_;
  std::uint64_t moves_ = 0, cut_ = 0;
  struct stretch {
    duration begin{}, end{};
    double value = 0;
  };
  std::vector<stretch> stretches_;
  duration last_{};
};

} // namespace shoal::scenarios
