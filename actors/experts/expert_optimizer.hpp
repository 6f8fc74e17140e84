// The optimizer of experts and trunks: AMSGrad, as in the paper, or one of those that all training
// has. Its state is floats.
#pragma once

#include "kernels/amsgrad.hpp"
#include "kernels/optimizer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

namespace shoal::actors {

/// Requires: kernels::float_state() of the kind.
using expert_optimizer = std::variant<kernels::amsgrad_config, kernels::optimizer_config>;

/// Floats of state for n parameters, which start as zeros.
std::size_t optimizer_state_size(const expert_optimizer& which, std::size_t n);

/// One step in place. Requires: as kernels::step and kernels::amsgrad_step.
void optimizer_step(const expert_optimizer& which, std::uint64_t step_number,
                    std::span<const float> gradient, std::span<float> parameters,
                    std::span<float> state);

} // namespace shoal::actors
