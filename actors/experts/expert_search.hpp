// Finds the experts with the largest logits among those that are alive, with few look-ups. A plain
// state machine.
//
// The experts stand on a grid, and the DHT has a dictionary for each prefix of coordinates with the
// next coordinates that are alive. An expert's logit is the sum of a score for each coordinate. The
// search always expands the prefix whose bound is the largest:
//   bound(prefix) = its scores + the largest score of each dimension that is left
// The search ends when no prefix has a bound above the k-th best expert. So the result is that of
// looking at all live experts. Where many good prefixes lead only to bad experts, this takes many
// look-ups. After `most_look_ups` the search takes the best experts that it has found. Complexity:
// with a full grid, at most 1 + (D - 1) k look-ups for D dimensions. Source: Ryabinin and Gusev,
// arXiv:2002.04013, section 3.2, whose beam keeps the k best prefixes of each length. A beam is not
// exact on a grid with holes; this search is.
#pragma once

#include "kernels/expert_gate.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace shoal::actors {

using kernels::expert_place;

struct expert_search_limits {
  std::size_t best = 4;           ///< experts to find
  std::size_t most_look_ups = 64; ///< prefixes to expand
};

class expert_search {
public:
  /// `scores`: for each dimension, those of its coordinates. Requires: no dimension is empty.
  expert_search(std::vector<std::vector<float>> scores, expert_search_limits limits);
  /// The scores of one row of a gate.
  static std::vector<std::vector<float>> scores_of(const kernels::expert_gate& gate,
                                                   std::span<const float> row);

  /// The prefix whose live coordinates are needed now; none: the search is over.
  std::optional<expert_place> wanted() const;
  /// The live coordinates after the prefix that wanted() named. Coordinates beyond the grid are
  /// left out.
  void give(const std::vector<std::uint32_t>& alive);

  struct found {
    double logit = 0;
    expert_place place;
  };
  /// Live experts with the largest logits, in descending order; ties by place. Fewer than
  /// `best` if fewer are alive.
  std::vector<found> best() const;
  std::size_t look_ups() const noexcept { return look_ups_; }
  /// True if the limit of look-ups ended the search.
  bool was_cut() const noexcept { return cut_; }

private:
  /// Ordered by bound, descending, then by place.
  using entry = std::pair<double, expert_place>;

  double score_of(const expert_place& place) const;
  double bound_of(const expert_place& place) const;
  bool is_over() const;

  std::vector<std::vector<float>> scores_;
  std::vector<double> most_after_; // by length: the largest sum of the dimensions that are left
  expert_search_limits limits_;
  std::set<entry> open_, found_; // negative bounds or logits, so that the largest comes first
  std::size_t look_ups_ = 0;
  bool cut_ = false;
};

} // namespace shoal::actors
