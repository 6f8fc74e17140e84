// The scalar product of two rows of floats.
#pragma once

#include <cstddef>

namespace shoal {

/// sum_i a[i] b[i], in eight partial sums. Each takes every eighth product, so the bits do not
/// depend on how the compiler vectorizes.
float dot(const float* a, const float* b, std::size_t n) noexcept;

} // namespace shoal
