// The description of a transformer in checkpoints: a JSON object with its sizes. Only this file
// writes and reads that object. Checkpoints carry it like the description of any other model.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/learn/checkpoint.hpp"
#include "kernels/learn/maxout_layout.hpp"

#include <string>

namespace shoal::learn {

/// The canonical text for checkpoint::model.
std::string description_of(const kernels::transformer_config& config,
                           const maxout_config& maxout = {});

struct described_transformer {
  kernels::transformer_config config;
  maxout_config maxout; ///< without pieces: no bottlenecks
};

/// The transformer in a checkpoint, with its bottlenecks.
/// Errors: a checkpoint of another workload; sizes that are missing or that validate() refuses;
/// tensors of another model. The sentences begin with a verb, because the caller puts the file's
/// name before them.
result<described_transformer> any_transformer_of(const checkpoint& saved);

/// The same for code that knows no bottlenecks. Errors: as above, and a model with bottlenecks.
result<kernels::transformer_config> transformer_of(const checkpoint& saved);

} // namespace shoal::learn
