// A model in pieces with the bottlenecks of maxout_layout.hpp. Between two blocks, activations are
// narrow: a block ends with a maxout, and the next one, or the head, begins with the matrix that
// expands. Blocks begin and end at bottlenecks. A block of several pieces computes the bottlenecks
// inside it, too, so any cut gives the whole model.
// A backward pass needs to know which channels were the largest. So it computes its pieces' forward
// passes twice: for that, and inside the model's own backward pass.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/layered_model.hpp"
#include "kernels/learn/maxout_layout.hpp"

#include <memory>

namespace shoal::learn {

/// `model` with bottlenecks. width() is that of the activations between blocks. The embedding's
/// output, which the first layer reads, is as wide as before.
/// Errors: those of validate(). block_tensors() and the passes refuse a block that begins or ends
/// within a piece.
result<std::shared_ptr<const layered_model>>
with_bottlenecks(std::shared_ptr<const layered_model> model, const maxout_config& maxout);

} // namespace shoal::learn
