// Beam search: the `beams` likeliest texts so far are continued together. In each step every beam
// gets every token, and the sums of log-probabilities choose the next beams.
//   score(beam + token) = score(beam) + logits[beam, token] - log sum exp logits[beam]
// Equal scores are ordered by beam, then by token. Before the first step all beams are the same
// text, so that only the first of them counts.
// Source: Lowerre, "The Harpy speech recognition system" (1976).
#pragma once

#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

class beam_search {
public:
  /// Requires: beams > 0.
  explicit beam_search(std::size_t beams);

  /// Chooses the next beams. `logits` [beams, vocabulary]. Requires: at least `beams` tokens, and a
  /// logit that is finite in each row. A logit that is NaN counts as minus infinity.
  void step(std::span<const float> logits);

  /// For each beam: the beam before the last step that it continues, and its last token.
  const std::vector<std::int64_t>& parents() const noexcept { return parents_; }
  const std::vector<token_id>& last_tokens() const noexcept { return last_; }
  /// The tokens of the likeliest beam.
  const std::vector<token_id>& best() const noexcept { return texts_.front(); }
  /// The sum of the log-probabilities of best().
  double best_score() const noexcept { return scores_.front(); }

private:
  std::vector<std::vector<token_id>> texts_; // likeliest first
  std::vector<double> scores_;
  std::vector<std::int64_t> parents_;
  std::vector<token_id> last_;
  bool begun_ = false;
};

} // namespace shoal::learn
