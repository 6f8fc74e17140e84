#include "actors/experts/expert_optimizer.hpp"

namespace shoal::actors {

std::size_t optimizer_state_size(const expert_optimizer& which, std::size_t n) {
  const auto* general = std::get_if<kernels::optimizer_config>(&which);
  return general != nullptr ? kernels::state_size(*general, n) : kernels::amsgrad_state_size(n);
}

void optimizer_step(const expert_optimizer& which, std::uint64_t step_number,
                    std::span<const float> gradient, std::span<float> parameters,
                    std::span<float> state) {
  if (const auto* general = std::get_if<kernels::optimizer_config>(&which))
    kernels::step(*general, static_cast<std::int64_t>(step_number), gradient, parameters, state);
  else
    kernels::amsgrad_step(std::get<kernels::amsgrad_config>(which), step_number, gradient,
                          parameters, state);
}

} // namespace shoal::actors
