#include "scenarios/stage/optimizer_step.hpp"

namespace shoal::scenarios {

result<kernels::optimizer_config> optimizer_of(const optimizer_options& from) {
  kernels::optimizer_config out;
  switch (from.kind) {
    case optimizer_kind::sgd: out.kind = kernels::optimizer_kind::sgd; break;
    case optimizer_kind::adamw: out.kind = kernels::optimizer_kind::adamw; break;
    case optimizer_kind::lamb: out.kind = kernels::optimizer_kind::lamb; break;
    case optimizer_kind::adamw8: out.kind = kernels::optimizer_kind::adamw8; break;
    case optimizer_kind::lamb8: out.kind = kernels::optimizer_kind::lamb8; break;
  }
  out.learning_rate = from.learning_rate;
  out.momentum = from.momentum;
  out.beta1 = from.beta1;
  out.beta2 = from.beta2;
  out.epsilon = from.epsilon;
  out.weight_decay = from.weight_decay;
  out.clip_norm = from.clip_norm;
  out.warmup_steps = static_cast<std::int64_t>(from.warmup_steps);
  out.decay_steps = static_cast<std::int64_t>(from.total_steps);
  if (auto valid = kernels::validate(out); !valid) return failure{"training.optimizer: " + valid.error()};
  return out;
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
