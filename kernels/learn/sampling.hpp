// The choice of the next token from logits. Temperature comes first, then the k likeliest tokens,
// then the smallest set of likeliest tokens whose probability reaches p. The token is drawn from
// the remaining ones in proportion to their probabilities.
// Source: top-k: Fan et al., arXiv:1805.04833; top-p (nucleus): Holtzman et al., arXiv:1904.09751.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/rng.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::learn {

struct sampling_options {
  double temperature = 0.8; ///< 0 always takes the likeliest
  std::size_t top_k = 0;    ///< 0 = all
  double top_p = 1;         ///< in (0, 1]
};

/// Errors: a temperature that is negative or not finite, top_p outside (0, 1].
result<void> validate(const sampling_options& options);

/// The index of the chosen token. Equal logits are ordered by index. Draws once from `random`, or
/// not at all at temperature 0. A logit that is NaN is chosen only if all are. Requires:
/// validate(options), logits not empty.
std::size_t choose(std::span<const float> logits, const sampling_options& options, rng& random);

} // namespace shoal::learn
