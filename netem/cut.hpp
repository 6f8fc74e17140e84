// Who cannot reach whom: partitions and black holes, as rules about pairs of machines.
//   apart   machines on different sides do not reach each other; side `nobody_elses` reaches
//   everyone.
//           `direction`: both; `from`: what sides above 0 send to another side is lost; `to`: what
//           they are sent.
//   ring    machines stand in a ring and reach those at most `reach` places away; machines outside
//   of it everyone.
// Names of the shapes as in jepsen's nemesis (grudges): a ring of majorities, a component of a
// minority. Complexity: blocks() is O(1).
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

  /// `selected` machines on one side, all others on the other.
  static cut between(const std::vector<std::uint32_t>& selected, traffic_direction direction);
  /// Each of `selected` reaches nobody.
  static cut isolating(const std::vector<std::uint32_t>& selected, traffic_direction direction);
  /// `sides` by machine; machines behind its end are on side 0.
  static cut apart(std::vector<std::uint32_t> sides, traffic_direction direction);
  /// Each of `members`, in the order of the ring, reaches a majority of them, no two the same one.
  static cut majorities_ring(const std::vector<std::uint32_t>& members);

  /// Whether what `from` sends to `to` is lost. Requires: different machines.
  bool blocks(std::uint32_t from, std::uint32_t to) const noexcept;

private:
  std::uint32_t side_of(std::uint32_t machine) const noexcept {
    return machine < sides_.size() ? sides_[machine] : 0;
  }

  cut_shape shape_ = cut_shape::apart;
  traffic_direction direction_ = traffic_direction::both;
  std::vector<std::uint32_t> sides_; // ring: 1 + place in the ring, 0: not in it
  std::uint32_t members_ = 0, reach_ = 0;
};

/// `count` different ones of `among` in a random order. Requires: count <= among.size().
std::vector<std::uint32_t> draw_some(std::vector<std::uint32_t> among, std::size_t count,
                                     rng& draws);

} // namespace shoal::netem
