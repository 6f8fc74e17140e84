// Sorts the values that the contributions have at each coordinate: the first step of the
// coordinate-wise median and of the trimmed mean.
// A sorting network compares whole blocks of coordinates at once, so the sort is a few vector
// instructions and has no branches.
// Source: Batcher, "Sorting Networks and Their Applications", AFIPS 1968; Knuth, The Art of
// Computer Programming, volume 3, section 5.2.2, algorithm M.
#pragma once

#include "kernels/reduce_weighted_mean.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace shoal::kernels {

class column_sort {
public:
  /// The largest number of coordinates that sort() takes at once.
  static constexpr std::size_t block_size = 256;

  /// A sort of `inputs` values at each coordinate. Requires: inputs > 0.
  explicit column_sort(std::size_t inputs);

  /// Sorts coordinates [at, at + n) of the inputs. Requires: as many inputs as the constructor was
  /// told, n <= block_size, finite values.
  void sort(std::span<const weighted_values> inputs, std::size_t at, std::size_t n);
  /// The values of this rank after sort(), one for each coordinate; rank 0 is the smallest.
  const float* of_rank(std::size_t rank) const { return rows_.data() + rank * block_size; }

private:
  std::vector<std::pair<std::uint32_t, std::uint32_t>> comparators_;
  std::vector<float> rows_;
};

} // namespace shoal::kernels
