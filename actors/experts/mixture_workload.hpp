// The workload of a swarm whose hosts hold the experts of a mixture (kernels/learn/
// mixture_model.hpp). It takes the state of the whole model apart into a trunk and experts, and
// joins them again. So checkpoints and the held-out loss are those of the whole model.
#pragma once

#include "actors/experts/expert_batch.hpp"
#include "actors/experts/expert_record.hpp"
#include "actors/training/workload.hpp"
#include "kernels/base/result.hpp"
#include "kernels/learn/mixture_model.hpp"
#include "kernels/optimizer.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shoal::actors {

/// Thread safety: any thread may call all functions.
class mixture_workload final : public workload {
public:
  /// `whole`: the workload of `model`. Errors: an optimizer that cannot work expert by expert.
  static result<std::shared_ptr<const mixture_workload>>
  make(std::shared_ptr<const workload> whole, std::shared_ptr<const learn::mixture_model> model,
       const kernels::optimizer_config& optimizer);

  // As the whole workload.
  std::uint64_t value_count() const override { return whole_->value_count(); }
  std::vector<kernels::tensor_slot> layout() const override { return whole_->layout(); }
  std::uint64_t sample_bytes() const override { return whole_->sample_bytes(); }
  model_state initial() const override { return whole_->initial(); }
  double accumulate(const model_state& at, std::span<const std::byte> samples, std::uint64_t count,
                    std::span<double> gradient_sum) const override {
    return whole_->accumulate(at, samples, count, gradient_sum);
  }
  model_state step(const model_state& at, const payload& mean_gradient) const override {
    return whole_->step(at, mean_gradient);
  }

  const learn::mixture_model& model() const noexcept { return *model_; }
  const kernels::optimizer_config& optimizer() const noexcept { return optimizer_; }

  expert_id id_of(std::size_t number) const;
  /// The trunk, and one expert, of a state of the whole model. Their optimizer goes on at the
  /// whole model's step.
  expert_state trunk_of(const model_state& whole) const;
  expert_state expert_of(const model_state& whole, const expert_id& which) const;
  /// Parameters and optimizer of the whole model. Requires: one state for each expert, by number.
  model_state joined(const expert_state& trunk,
                     std::span<const std::shared_ptr<const expert_state>> experts) const;

  /// True for the first caller in this process for this epoch and those before. One trainer of a
  /// process puts the whole model together.
  bool claims(std::uint64_t epoch) const;

private:
  mixture_workload() = default;
  expert_state part_of(const model_state& whole, std::size_t first, std::size_t size) const;

  std::shared_ptr<const workload> whole_;
  std::shared_ptr<const learn::mixture_model> model_;
  kernels::optimizer_config optimizer_;
  mutable std::atomic<std::uint64_t> claimed_{0};
};

} // namespace shoal::actors
