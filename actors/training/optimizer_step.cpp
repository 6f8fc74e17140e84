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
                      const payload& mean_gradient, std::span<const kernels::tensor_slot> layout) {
  auto out = at;
  auto from = at.parameters.floats();
  auto state_from = at.optimizer.bytes();
  std::vector<float> parameters(from.begin(), from.end());
  std::vector<std::byte> state(state_from.begin(), state_from.end());
  ++out.step;
  kernels::step(optimizer, static_cast<std::int64_t>(out.step), mean_gradient.floats(), parameters,
                std::span(state), layout);
  out.parameters = payload{std::move(parameters)};
  out.optimizer = payload{std::move(state)};
  return out;
}

} // namespace shoal::actors
