// The feed-forward expert: two hidden layers of four times the width.
//   a = relu(norm(A x));  b = relu(norm(B a));  y = C b
// A [width, 4 width], B [4 width, 4 width], C [4 width, width], each with biases, norms with gain
// and bias. 24 width^2 + 25 width parameters.
// Source: Ryabinin and Gusev, arXiv:2002.04013, section 4.1 (the feed-forward expert).
#pragma once

#include "kernels/learn/expert_block.hpp"

#include <memory>

namespace shoal::learn {

/// Requires: width > 0.
std::shared_ptr<const expert_block> make_feed_forward(std::size_t width);

} // namespace shoal::learn
