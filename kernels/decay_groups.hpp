// Optimizer steps in which only some tensors decay. ALBERT's published runs left biases and the
// gains of most norms without weight decay.
#pragma once

#include "kernels/layout.hpp"
#include "kernels/optimizer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace shoal::kernels {

/// Whether weight decay shrinks the tensor of this name.
using decays = bool (*)(std::string_view name);

/// step() of optimizer.hpp with weight decay 0 for tensors that do not decay. Gradients are clipped
/// by the norm of the whole gradient. Requires: as step(), float_state(config.kind), and a layout
/// that covers all parameters.
void step_in_groups(const optimizer_config& config, std::int64_t step_number,
                    std::span<const float> gradient, std::span<float> parameters,
                    std::span<std::byte> state, std::span<const tensor_slot> layout, decays which);

} // namespace shoal::kernels
