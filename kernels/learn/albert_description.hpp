// The description of an ALBERT in checkpoints: a JSON object with its sizes, like
// transformer_description.hpp.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/albert_layout.hpp"
#include "kernels/learn/checkpoint.hpp"

#include <string>

namespace shoal::learn {

/// The canonical text for checkpoint::model. Requires: the head `pretraining`.
std::string description_of(const albert_config& config);

/// The ALBERT in a checkpoint. Errors: as transformer_of().
result<albert_config> albert_of(const checkpoint& saved);

} // namespace shoal::learn
