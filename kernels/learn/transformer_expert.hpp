// Transformer blocks as experts. A row is a whole sequence: the activations [context, dim] of its
// tokens. So the gate routes sequences.
// Source of the blocks: kernels/learn/transformer.hpp, in pieces by transformer_blocks.hpp.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/learn/expert_block.hpp"

#include <memory>

namespace shoal::learn {

/// One layer of a transformer of this shape. The result is the layer's output minus its input,
/// because a network of experts adds the input again. `layers` and `vocabulary` do not matter.
/// Errors: sizes that validate() refuses; libtorch cannot be loaded.
result<std::shared_ptr<const expert_block>>
make_transformer_expert(const kernels::transformer_config& config);

} // namespace shoal::learn
