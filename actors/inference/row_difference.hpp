// Compares outputs that two hosts have computed for the same inputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

namespace shoal::actors {

/// The first row whose values differ: |a - b| > tolerance * |b|, in the Euclidean norm. A row with
/// a value that is not a number differs from each other one. `a` and `b`: [rows, width]. Requires:
/// both have the same size.
inline std::optional<std::size_t> first_difference(std::span<const float> a,
                                                   std::span<const float> b, std::size_t width,
                                                   double tolerance) {
  for (std::size_t row = 0; row * width < a.size(); ++row) {
    double apart = 0, size = 0;
    for (std::size_t i = row * width; i < std::min((row + 1) * width, a.size()); ++i) {
      const double x = a[i], y = b[i];
      apart += (x - y) * (x - y);
      size += y * y;
    }
    if (!(apart <= tolerance * tolerance * size)) return row;
  }
  return std::nullopt;
}

} // namespace shoal::actors
