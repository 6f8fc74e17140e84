// The transformer of transformer.hpp with the bottlenecks of maxout_layout.hpp, as one machine
// trains it. The layers compute with libtorch.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/maxout_layout.hpp"
#include "kernels/learn/model.hpp"

#include <memory>

namespace shoal::learn {

/// `checkpoint`: see transformer. Without bottlenecks the result is a transformer. Errors: sizes
/// that validate() refuses; libtorch cannot be loaded.
result<std::unique_ptr<const language_model>>
make_transformer(const kernels::transformer_config& config, const maxout_config& maxout,
                 bool checkpoint = false);

} // namespace shoal::learn
