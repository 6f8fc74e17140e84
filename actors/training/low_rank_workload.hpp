// A workload whose gradients are averaged by PowerSGD (kernels/compress/power_sgd.hpp), in two
// rounds. It wraps another workload. A step reconstructs the gradient from the means of both
// rounds, and passes it to the wrapped workload. The Q of the next step is part of the state, after
// the optimizer's data, so downloads and checkpoints include it. Peers that repeat a step download
// the two means, which give the same bits everywhere. docs/adr/0015 has the reasons.
#pragma once

#include "actors/training/workload.hpp"

#include <memory>

namespace shoal::actors {

class low_rank_workload final : public workload {
public:
  /// Requires: `how` is made for the layout of `inner`.
  low_rank_workload(std::shared_ptr<const workload> inner, kernels::power_sgd how);

  std::uint64_t value_count() const override { return inner_->value_count(); }
  std::vector<kernels::tensor_slot> layout() const override { return inner_->layout(); }
  const kernels::power_sgd* low_rank() const override { return &how_; }
  std::uint64_t step_values() const override { return how_.first_round() + how_.second_round(); }
  std::uint64_t sample_bytes() const override { return inner_->sample_bytes(); }
  bool is_size_only() const override { return inner_->is_size_only(); }
  model_state initial() const override;
  double accumulate(const model_state& at, std::span<const std::byte> samples, std::uint64_t count,
                    std::span<double> gradient_sum) const override {
    return inner_->accumulate(at, samples, count, gradient_sum);
  }
  std::shared_ptr<const workload> mislabelled() const override { return inner_->mislabelled(); }
  /// If the means give no finite gradient, the wrapped workload gets a gradient that is not finite.
  /// Correct peers never produce such means.
  model_state step(const model_state& at, const payload& means) const override;

  /// A state of the wrapped workload with the initial Q.
  model_state with_first_q(model_state state) const;

private:
  std::shared_ptr<const workload> inner_;
  kernels::power_sgd how_;
};

/// The Q of a state of such a workload [how.state_size()]. Requires: the state is not size-only.
std::span<const float> q_of(const kernels::power_sgd& how, const model_state& state);
/// The optimizer's state without Q.
payload optimizer_without_q(const kernels::power_sgd& how, const model_state& state);

} // namespace shoal::actors
