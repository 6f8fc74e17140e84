// One machine's pass through all pieces of a model (layered_model.hpp).
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/learn/layered_model.hpp"

#include <span>
#include <vector>

namespace shoal::learn {

/// The sum of the samples' losses. Adds the gradient to `gradient_sum`, unless this is empty.
/// `layout` is that of `parameters` and of the gradient. `inputs`, `targets`: [samples * time].
/// Errors: those of layered_model and gather().
result<double> whole_pass(const layered_model& model,
                          const std::vector<kernels::tensor_slot>& layout,
                          std::span<const float> parameters, pass_shape shape,
                          std::span<const token_id> inputs, std::span<const token_id> targets,
                          std::span<float> gradient_sum);

/// The prediction after each sample's last token, as layered_model::logits.
result<std::vector<float>> whole_logits(const layered_model& model,
                                        const std::vector<kernels::tensor_slot>& layout,
                                        std::span<const float> parameters, pass_shape shape,
                                        std::span<const token_id> inputs);

} // namespace shoal::learn
