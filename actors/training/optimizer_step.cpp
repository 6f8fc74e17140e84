#include "actors/training/optimizer_step.hpp"

namespace shoal::actors {

model_state fresh_state(const kernels::optimizer_config& optimizer, std::vector<float> parameters) {
  model_state out;
  out.optimizer =
      payload{std::vector<std::byte>(kernels::state_bytes(optimizer, parameters.size()))};
  out.parameters = payload{std::move(parameters)};
  return out;
}

model_state step_from(const model_state& at, const kernels::optimizer_config& optimizer,
                      const payload& mean_gradient, std::span<const kernels::tensor_slot> layout,
                      kernels::decays which) {
  auto out = at;
  auto from = at.parameters.floats();
  auto state_from = at.optimizer.bytes();
  std::vector<float> parameters(from.begin(), from.end());
  std::vector<std::byte> state(state_from.begin(), state_from.end());
  ++out.step;
  const auto number = static_cast<std::int64_t>(out.step);
  if (which != nullptr && (optimizer.weight_decay > 0 || !optimizer.adapt_undecayed))
    kernels::step_in_groups(optimizer, number, mean_gradient.floats(), parameters, state, layout,
                            which);
  else
    kernels::step(optimizer, number, mean_gradient.floats(), parameters, std::span(state), layout);
  out.parameters = payload{std::move(parameters)};
  out.optimizer = payload{std::move(state)};
  return out;
}

} // namespace shoal::actors
