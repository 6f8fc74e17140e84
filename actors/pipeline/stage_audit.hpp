// Checks one output of a host of a stage: other hosts of the stage compute the same task again. No
// actor and no clock.
//
// Steps:
// - a second opinion. The output is right if both agree.
// - further opinions, while no two agree. The first two that agree are right, and all others are
//   wrong.
//
// Two outputs agree if |a - b| <= tolerance * |b| for each row, in the Euclidean norm, and their
// losses do. A host that changes less is not found. Hosts that lie together can be the first two
// that agree. The gradient of the stage's own parameters stays at its host, so no opinion is about
// it.
// Source: the method of actors/inference/output_check.hpp, for one task.
#pragma once

#include "actors/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace shoal::actors {

class stage_audit {
public:
  struct opinion {
    peer_id peer = 0;
    std::vector<float> values; ///< [rows, width]; empty: they could not be read
    double loss = 0;
  };
  enum class verdict : std::uint8_t {
    open,
    right,    ///< all opinions agree
    wrong,    ///< two agree, and wrong_peers() do not
    disputed, ///< no other host can be asked, and no two opinions agree
  };

  /// `first`: the output that is checked. Requires: width > 0, tolerance >= 0.
  stage_audit(opinion first, std::size_t width, double tolerance);

  /// A host has computed the task again. Requires: the verdict is open, and each host has one
  /// opinion.
  verdict add(opinion next);
  /// No other host can compute the task. Requires: the verdict is open.
  verdict give_up();

  verdict found() const noexcept { return found_; }
  std::size_t opinions() const noexcept { return opinions_.size(); }
  /// The hosts whose opinions are known.
  std::set<peer_id> peers() const;
  /// Empty unless the verdict is `wrong`.
  const std::set<peer_id>& wrong_peers() const noexcept { return wrong_; }

private:
  bool agree(const opinion& a, const opinion& b) const;

  std::size_t width_;
  double tolerance_;
  std::vector<opinion> opinions_;
  std::set<peer_id> wrong_;
  verdict found_ = verdict::open;
};

} // namespace shoal::actors
