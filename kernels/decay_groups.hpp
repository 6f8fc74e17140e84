// Optimizer steps in which only some tensors decay. ALBERT's published runs left biases and the
// gains of most norms without weight decay.
// LAMB moves a tensor by the rate times the tensor's norm, so a bias that begins at 0 hardly moves.
// Implementations differ: the runs of ALBERT adapted all tensors, and timm leaves tensors without
// weight decay unadapted (`always_adapt`), as optimizer_config::adapt_undecayed = false does.
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

/// step() of optimizer.hpp with weight decay 0 for tensors that do not decay. With LAMB and
/// adapt_undecayed = false these tensors make a step of AdamW at the same rate. Gradients are
/// clipped by the norm of the whole gradient. Requires: as step(), float_state(config.kind), and a
/// layout that covers all parameters.
void step_in_groups(const optimizer_config& config, std::int64_t step_number,
                    std::span<const float> gradient, std::span<float> parameters,
                    std::span<std::byte> state, std::span<const tensor_slot> layout, decays which);

} // namespace shoal::kernels
