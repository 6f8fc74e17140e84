// The description of a DALL-E in checkpoints: a JSON object with its sizes, like
// transformer_description.hpp.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/checkpoint.hpp"
#include "kernels/learn/dalle_layout.hpp"

#include <string>

namespace shoal::learn {

/// The canonical text for checkpoint::model.
std::string description_of(const dalle_config& config);

/// The DALL-E in a checkpoint. Errors: as transformer_of().
result<dalle_config> dalle_of(const checkpoint& saved);

} // namespace shoal::learn
