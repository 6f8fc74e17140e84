// The entries of a codebook as moving averages of the vectors that they stand for, batch by batch.
//   n_k = decay n_k + (1 - decay) (vectors of the batch with code k)
//   m_k = decay m_k + (1 - decay) (their sum)
//   e_k = m_k / n_k
// An entry whose n_k falls below `dead_below` is dead. It becomes a vector of the batch, drawn with
// probability proportional to the squared distance from its own entry, and n_k becomes 1.
// Source: van den Oord et al., arXiv:1711.00937, appendix A.1.
#pragma once

#include "kernels/base/rng.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace shoal::learn {

class moving_codes {
public:
  /// Requires: `entries` [codes, width], decay in [0, 1).
  moving_codes(std::vector<float> entries, std::size_t width, double decay, double dead_below);

  const std::vector<float>& entries() const noexcept { return entries_; }
  /// Entries that were dead so far.
  std::size_t reseeded() const noexcept { return reseeded_; }

  /// Requires: `vectors` [count, width], a code below the number of entries for each.
  void update(std::span<const float> vectors, std::span<const token_id> codes, rng& random);

private:
  void reseed(std::span<const float> vectors, std::span<const token_id> codes, rng& random);

  std::size_t width_;
  double decay_, dead_below_;
  std::vector<float> entries_;
  std::vector<double> counts_, sums_;
  std::size_t reseeded_ = 0;
};

} // namespace shoal::learn
