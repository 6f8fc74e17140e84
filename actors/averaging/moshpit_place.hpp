// A peer's place on the grid of Moshpit SGD: d - 1 digits of a grid of side M and dimension d.
// Peers with the same digits in the same round are a group. After a round each member moves on:
// C := (C[2..], c), with a digit c that no other member of the group has. Members of one group of
// at most M are then in different groups for the next d - 1 rounds.
// Source: Ryabinin et al., "Moshpit SGD", arXiv:2103.03239, algorithm 2 and section 3.2.
#pragma once

#include "actors/averaging/round.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/mixing.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace shoal::actors {

class moshpit_place {
public:
  /// At a random place.
  moshpit_place(const kernels::grid& grid, rng draws);

  /// The name of this place's group in a round.
  state_id group(std::uint64_t round) const;
  /// The digit of this member after a round that has succeeded: its index in the group plus an
  /// offset that the group shares. So the groups of the next round fill evenly.
  std::uint32_t digit_after(const round_result& result) const;
  void move_to(std::uint32_t digit);
  /// After a round that has failed.
  void move_at_random() { move_to(any_digit()); }
  void draw();

private:
  std::uint32_t any_digit();

  std::uint32_t side_;
  rng draws_;
  std::vector<std::uint32_t> digits_;
};

} // namespace shoal::actors
