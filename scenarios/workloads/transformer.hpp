// Options of the workload 'transformer': a language model that reads and writes bytes.
#pragma once

#include "kernels/layout.hpp"

#include <cstdint>

namespace shoal::scenarios {

struct transformer_options {
  std::uint64_t layers = 2, heads = 4, dim = 64, context = 64;
  bool checkpoint = false; ///< activations are computed again, layer by layer, in the backward pass
  bool operator==(const transformer_options&) const = default;
};

kernels::transformer_config model_of(const transformer_options& from);

} // namespace shoal::scenarios
