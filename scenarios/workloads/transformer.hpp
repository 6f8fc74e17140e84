// Options of the workload 'transformer': a language model that reads and writes bytes.
#pragma once

#include "kernels/layout.hpp"
#include "kernels/learn/maxout_layout.hpp"

#include <cstdint>

namespace shoal::scenarios {

struct transformer_options {
  std::uint64_t layers = 2, heads = 4, dim = 64, context = 64;
  bool checkpoint = false; ///< activations are computed again, layer by layer, in the backward pass
  std::uint64_t bottlenecks = 0; ///< pieces of layers that end in one
  std::uint64_t maxout = 1;      ///< channels of which the largest passes a bottleneck
  bool operator==(const transformer_options&) const = default;
};

kernels::transformer_config model_of(const transformer_options& from);
learn::maxout_config maxout_of(const transformer_options& from);

} // namespace shoal::scenarios
