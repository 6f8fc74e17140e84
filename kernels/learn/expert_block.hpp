// An expert of a mixture: a block with parameters, from rows to rows of the same width. Its result
// is added to the row that entered, so the block itself has no skip connection. A row is what the
// gate routes as one: a sample, or a whole sequence with all its tokens.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

/// Errors of the passes: spans of another size than the arguments need, a failure of the library
/// that computes. Thread safety: immutable; several threads may call all functions at once.
class expert_block {
public:
  virtual ~expert_block() = default;

  /// The floats of a row.
  virtual std::size_t width() const noexcept = 0;
  virtual std::size_t parameter_count() const noexcept = 0;
  virtual std::vector<float> initial_parameters(std::uint64_t seed) const = 0;

  /// The output [rows, width] for x [rows, width].
  virtual result<std::vector<float>> forward(std::span<const float> parameters,
                                             std::span<const float> x) const = 0;
  /// The gradient with respect to x. Adds the gradient of the parameters to `gradient_sum`. The
  /// forward pass is computed again, so that an expert keeps nothing between the two passes.
  virtual result<std::vector<float>> backward(std::span<const float> parameters,
                                              std::span<const float> x,
                                              std::span<const float> gradient_out,
                                              std::span<float> gradient_sum) const = 0;
};

} // namespace shoal::learn
