// The shape of a transformer with bottlenecks, and the place of its tensors. A bottleneck stands
// behind each of `pieces` pieces of the layers, the last one before the head:
//   narrow[j] = max of x[k j], ..., x[k j + k - 1]      k = `group`
//   x' = expand * narrow                                expand [dim, dim / k] is learnt
// Where a pipeline cuts the model at a bottleneck, `narrow` travels in place of x: a k-th of the
// bytes, forward and backward.
// Source: Ryabinin et al., arXiv:2301.11913, the appendix on compression-aware architectures.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"

#include <cstdint>
#include <vector>

namespace shoal::learn {

struct maxout_config {
  std::int64_t pieces = 0; ///< pieces of layers with a bottleneck behind them; 0: no bottlenecks
  std::int64_t group = 1;  ///< channels of which the largest passes; it divides the width
  bool operator==(const maxout_config&) const = default;
};

/// Errors: groups that do not divide the width, or more pieces than layers. Groups without pieces,
/// or the reverse.
result<void> validate(const maxout_config& maxout, std::int64_t width, std::int64_t layers);

/// The matrix behind piece `piece`, with the offset 0.
kernels::tensor_slot expand_tensor(const maxout_config& maxout, std::int64_t piece,
                                   std::int64_t width);

/// kernels::layout_of(model), and then bottleneck<i>.expand [dim, dim / group] for each piece i.
/// Requires: validate() of both.
std::vector<kernels::tensor_slot> layout_of(const kernels::transformer_config& model,
                                            const maxout_config& maxout);

/// The transformer's parameters, and then the matrices. Values of matrices are normal with
/// deviation 1 / sqrt(dim / group), which keeps the mean square of what passes. Equal seeds give
/// equal bits. Requires: as above.
std::vector<float> initial_parameters(const kernels::transformer_config& model,
                                      const maxout_config& maxout, std::uint64_t seed);

} // namespace shoal::learn
