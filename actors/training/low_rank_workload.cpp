#include "actors/training/low_rank_workload.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace shoal::actors {

namespace {

model_state with_q(model_state state, std::span<const float> q) {
  const auto inner = state.optimizer.bytes();
  std::vector<std::byte> out(inner.size() + q.size_bytes());
  if (!inner.empty()) std::memcpy(out.data(), inner.data(), inner.size());
  if (!q.empty()) std::memcpy(out.data() + inner.size(), q.data(), q.size_bytes());
  state.optimizer = payload{std::move(out)};
  return state;
}

} // namespace

std::span<const float> q_of(const kernels::power_sgd& how, const model_state& state) {
  const auto bytes = 4 * how.state_size();
  SHOAL_CHECK(state.optimizer.size() >= bytes, "a state with its Q");
  return state.optimizer.slice(state.optimizer.size() - bytes, bytes).floats();
}

payload optimizer_without_q(const kernels::power_sgd& how, const model_state& state) {
  SHOAL_CHECK(state.optimizer.size() >= 4 * how.state_size(), "a state with its Q");
  if (state.optimizer.is_size_only())
    return payload::size_only(state.optimizer.size() - 4 * how.state_size());
  return state.optimizer.slice(0, state.optimizer.size() - 4 * how.state_size());
}

low_rank_workload::low_rank_workload(std::shared_ptr<const workload> inner, kernels::power_sgd how)
    : inner_(std::move(inner)), how_(std::move(how)) {
  SHOAL_CHECK(how_.size() == inner_->value_count(), "PowerSGD of that workload's gradients");
}

model_state low_rank_workload::with_first_q(model_state state) const {
  if (is_size_only()) {
    state.optimizer = payload::size_only(state.optimizer.size() + 4 * how_.state_size());
    return state;
  }
  return with_q(std::move(state), how_.first_state());
}

model_state low_rank_workload::initial() const {
  return with_first_q(inner_->initial());
}

model_state low_rank_workload::step(const model_state& at, const payload& means) const {
  SHOAL_CHECK(means.size() == 4 * step_values(), "the means of both rounds");
  if (is_size_only()) return inner_->step(at, means);
  std::vector<float> p(how_.first_round()), gradient(how_.size()), q(how_.state_size());
  const auto second = means.floats().subspan(p.size());
  std::copy_n(means.floats().begin(), p.size(), p.begin());
  if (!how_.orthogonalise(p) || !how_.approximate(p, second, gradient))
    std::fill(gradient.begin(), gradient.end(), std::numeric_limits<float>::quiet_NaN());
  how_.next_state(second, q);
  auto inner = at;
  inner.optimizer = optimizer_without_q(how_, at);
  return with_q(inner_->step(inner, payload{std::move(gradient)}), q);
}

} // namespace shoal::actors
