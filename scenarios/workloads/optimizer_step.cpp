#include "scenarios/workloads/optimizer_step.hpp"

namespace shoal::scenarios {

result<kernels::optimizer_config> optimizer_of(const kernels::optimizer_config& from) {
  if (auto valid = kernels::validate(from); !valid) return failure{"training.optimizer: " + valid.error()};
  return from;
}

actors::model_state fresh_state(const kernels::optimizer_config& optimizer, std::vector<float> parameters) {
  actors::model_state out;
  out.optimizer = payload{std::vector<std::byte>(kernels::state_bytes(optimizer, parameters.size()))};
  out.parameters = payload{std::move(parameters)};
  return out;
}

actors::model_state step_from(const actors::model_state& at, const kernels::optimizer_config& optimizer,
                              const payload& mean_gradient, std::span<const kernels::tensor_slot> layout) {
  auto out = at;
  auto from = at.parameters.floats();
  auto state_from = at.optimizer.bytes();
  std::vector<float> parameters(from.begin(), from.end());
  std::vector<std::byte> state(state_from.begin(), state_from.end());
  ++out.step;
  kernels::step(optimizer, static_cast<std::int64_t>(out.step), mean_gradient.floats(), parameters, std::span(state), layout);
  out.parameters = payload{std::move(parameters)};
  out.optimizer = payload{std::move(state)};
  return out;
}

payload mended_state(const kernels::optimizer_config& optimizer, payload averaged, std::size_t parameters) {
  if (averaged.is_hollow() || averaged.empty() || !kernels::float_state(optimizer.kind)) return averaged;
  std::vector<float> state(averaged.floats().begin(), averaged.floats().end());
  if (!kernels::mend_moments(optimizer, parameters, state)) return averaged;
  return payload{std::move(state)};
}

}  // namespace shoal::scenarios
