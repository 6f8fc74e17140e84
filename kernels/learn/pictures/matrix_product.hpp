// A product of matrices in plain loops over whole vector registers. Each value is a sum in the
// order of the inner index, so the bits are the same on every CPU.
#pragma once

#include <cstddef>

namespace shoal::learn {

/// out[r, c] += sum_i a[r, i] b[i, c]. Shapes: a [rows, inner], b [inner, columns], out [rows,
/// columns], row-major. Requires: no aliasing.
void add_product(const float* a, const float* b, std::size_t rows, std::size_t inner,
                 std::size_t columns, float* out);

/// out[c, r] = in[r, c]. Requires: no aliasing.
void transpose(const float* in, std::size_t rows, std::size_t columns, float* out);

} // namespace shoal::learn
