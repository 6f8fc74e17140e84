// A cut: a partition or a black hole, as a rule about pairs of machines.
// - apart: machines on different sides do not reach each other; the side `nobody_elses` reaches
//   every side. The direction `from` loses only messages that sides above 0 send to another side;
//   `to` loses only messages sent to them.
// - ring: machines stand in a ring, and each reaches those at most `reach` places away. Machines
//   outside of the ring reach everyone.
//
// The shapes have the names of jepsen's nemesis (grudges).
// Complexity: blocks() is O(1).
#pragma once

#include "kernels/base/rng.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shoal::netem {

enum class cut_shape : std::uint8_t { apart, ring };
enum class traffic_direction : std::uint8_t { both, to, from };

class cut {
public:
  static constexpr std::uint32_t nobody_elses = 0xffffffff;

  /// Puts the `selected` machines on one side, and all others on the other side.
  static cut between(const std::vector<std::uint32_t>& selected, traffic_direction direction);
  /// Cuts each of `selected` off from all machines.
  static cut isolating(const std::vector<std::uint32_t>& selected, traffic_direction direction);
  /// `sides` holds the side of each machine. Machines beyond its end are on side 0.
  static cut apart(std::vector<std::uint32_t> sides, traffic_direction direction);
  /// Each of `members`, in the order of the ring, reaches a majority of them. No two reach the same
  /// majority.
  static cut majorities_ring(const std::vector<std::uint32_t>& members);

  /// True if the cut loses messages from `from` to `to`. Requires: different machines.
  bool blocks(std::uint32_t from, std::uint32_t to) const noexcept;

private:
  std::uint32_t side_of(std::uint32_t machine) const noexcept {
    return machine < sides_.size() ? sides_[machine] : 0;
  }

  cut_shape shape_ = cut_shape::apart;
  traffic_direction direction_ = traffic_direction::both;
  std::vector<std::uint32_t> sides_; // in a ring: 1 + the place in the ring; 0: not in it
  std::uint32_t members_ = 0, reach_ = 0;
};

/// Draws `count` different elements of `among` in random order. Requires: count <= among.size().
std::vector<std::uint32_t> draw_some(std::vector<std::uint32_t> among, std::size_t count,
                                     rng& draws);

} // namespace shoal::netem
