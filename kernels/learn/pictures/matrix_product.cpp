#include "kernels/learn/pictures/matrix_product.hpp"

#include "kernels/base/wider.hpp"

#include <algorithm>
#include <array>

namespace shoal::learn {

namespace {

/// Twelve registers of AVX2 hold the sums of a tile. Two more hold a row of b.
constexpr std::size_t tile_rows = 6, tile_columns = 16;

using tile_row = float __attribute__((vector_size(tile_columns * sizeof(float))));
/// The same at any place of an array.
using tile_row_in_array = float
    __attribute__((vector_size(tile_columns * sizeof(float)), aligned(alignof(float)), may_alias));

/// A whole tile. `stride`: columns of b and out.
SHOAL_WIDER void add_tile(const float* a, const float* b, std::size_t inner, std::size_t stride,
                          float* out) {
  tile_row s0{}, s1{}, s2{}, s3{}, s4{}, s5{};
  for (std::size_t i = 0; i < inner; ++i) {
    const tile_row row = *reinterpret_cast<const tile_row_in_array*>(b + i * stride);
    s0 += a[i] * row;
    s1 += a[inner + i] * row;
    s2 += a[2 * inner + i] * row;
    s3 += a[3 * inner + i] * row;
    s4 += a[4 * inner + i] * row;
    s5 += a[5 * inner + i] * row;
  }
  const auto add = [&](std::size_t r, const tile_row& sums) {
    *reinterpret_cast<tile_row_in_array*>(out + r * stride) += sums;
  };
  add(0, s0), add(1, s1), add(2, s2), add(3, s3), add(4, s4), add(5, s5);
}

/// Rows and columns that fill no tile.
SHOAL_WIDER void add_rest(const float* a, const float* b, std::size_t rows, std::size_t inner,
                          std::size_t columns, std::size_t stride, float* out) {
  for (std::size_t r = 0; r < rows; ++r) {
    std::array<float, tile_columns> sums{};
    for (std::size_t i = 0; i < inner; ++i) {
      const float value = a[r * inner + i];
      for (std::size_t c = 0; c < columns; ++c) sums[c] += value * b[i * stride + c];
    }
    for (std::size_t c = 0; c < columns; ++c) out[r * stride + c] += sums[c];
  }
}

} // namespace

void add_product(const float* a, const float* b, std::size_t rows, std::size_t inner,
                 std::size_t columns, float* out) {
  for (std::size_t c = 0; c < columns; c += tile_columns) {
    const auto width = std::min(tile_columns, columns - c);
    for (std::size_t r = 0; r < rows; r += tile_rows) {
      const auto height = std::min(tile_rows, rows - r);
      const auto *from = a + r * inner, *by = b + c;
      auto* to = out + r * columns + c;
      if (height == tile_rows && width == tile_columns)
        add_tile(from, by, inner, columns, to);
      else
        add_rest(from, by, height, inner, width, columns, to);
    }
  }
}

void transpose(const float* in, std::size_t rows, std::size_t columns, float* out) {
  constexpr std::size_t block = 16; // both sides of a block stay in the cache
  for (std::size_t r = 0; r < rows; r += block)
    for (std::size_t c = 0; c < columns; c += block)
      for (std::size_t y = r; y < std::min(rows, r + block); ++y)
        for (std::size_t x = c; x < std::min(columns, c + block); ++x)
          out[x * rows + y] = in[y * columns + x];
}

} // namespace shoal::learn
