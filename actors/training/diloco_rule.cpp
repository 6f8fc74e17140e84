#include "actors/training/diloco_rule.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace shoal::actors {

payload diloco_rule::contribution(const model_state& own, const model_state& shared) const {
  const auto n = own.parameters.size() / sizeof(float);
  const auto state_size = kernels::outer_state_size(outer_, n);
  if (own.parameters.is_size_only()) return payload::size_only(4 * (n + state_size));
  std::vector<float> gradient(n), out(n + state_size);
  kernels::pseudo_gradient(shared.parameters.floats(), own.parameters.floats(), gradient);
  std::copy_n(shared.parameters.floats().begin(), n, out.begin());
  // A state without one begins with zeros.
  if (!shared.method_state.empty())
    std::copy_n(shared.method_state.floats().begin(), state_size,
                out.begin() + static_cast<std::ptrdiff_t>(n));
  kernels::outer_step(outer_, 1, gradient, std::span(out).first(n),
                      std::span(out).last(state_size));
  return payload{std::move(out)};
}

outer_rule::result diloco_rule::after(const averaged_round& round, const workload&) const {
  const auto split = round.now.parameters.size();
  auto shared = round.now;
  shared.parameters = round.mean.slice(0, split);
  if (round.mean.size() > split)
    shared.method_state = round.mean.slice(split, round.mean.size() - split);
  auto own = shared;
  own.parameters = shifted(round.now.parameters, round.contributed.parameters, shared.parameters);
  return {std::move(shared), std::move(own)};
}

} // namespace shoal::actors
