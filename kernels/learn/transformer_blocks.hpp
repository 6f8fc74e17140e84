// The transformer of transformer.hpp in pieces. Any cut of its layers into blocks gives the whole
// model's loss and gradients: the same bits, because the whole model calls the same functions.
#pragma once

#include "kernels/learn/layered_model.hpp"

#include <memory>

namespace shoal::learn {

/// With `checkpoint` the backward pass of a block keeps only each layer's input, and computes the
/// rest of a layer when it reaches the layer. Errors: sizes that validate() refuses; libtorch
/// cannot be loaded.
result<std::unique_ptr<const layered_model>>
make_transformer_blocks(const kernels::transformer_config& config, bool checkpoint = false);

} // namespace shoal::learn
