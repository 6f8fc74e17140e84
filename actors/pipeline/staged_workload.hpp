// The workload of a swarm whose hosts hold the stages of a model (stage_model.hpp). It takes the
// state of the whole model apart into those of the stages, and joins them again. So checkpoints and
// the held-out loss are those of the whole model.
#pragma once

#include "actors/pipeline/stage_model.hpp"
#include "actors/training/workload.hpp"
#include "kernels/base/result.hpp"
#include "kernels/optimizer.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace shoal::actors {

/// The state of the whole model whose stages have the states `stages`, in order.
state_id whole_state_id(std::span<const state_id> stages);

/// A field of an optimizer's configuration, and why no host of a stage can work with its value.
struct unfit_for_stages {
  std::string field;
  std::string why;
};
/// Empty: hosts of stages can take the optimizer's steps.
std::vector<unfit_for_stages> unfit_fields(const kernels::optimizer_config& optimizer);

/// Thread safety: any thread may call all functions.
class staged_workload final : public workload {
public:
  /// `whole`: the workload of the model that `cut` divides. Errors: an optimizer with
  /// unfit_fields(); a tensor that the workload lacks.
  static result<std::shared_ptr<const staged_workload>>
  make(std::shared_ptr<const workload> whole, std::shared_ptr<const stage_model> cut,
       const kernels::optimizer_config& optimizer);

  // As the whole workload.
  std::uint64_t value_count() const override { return whole_->value_count(); }
  std::vector<kernels::tensor_slot> layout() const override { return whole_->layout(); }
  std::uint64_t sample_bytes() const override { return whole_->sample_bytes(); }
  bool is_size_only() const override { return whole_->is_size_only(); }
  model_state initial() const override { return whole_->initial(); }
  double accumulate(const model_state& at, std::span<const std::byte> samples, std::uint64_t count,
                    std::span<double> gradient_sum) const override {
    return whole_->accumulate(at, samples, count, gradient_sum);
  }
  model_state step(const model_state& at, const payload& mean_gradient) const override {
    return whole_->step(at, mean_gradient);
  }

  const std::shared_ptr<const stage_model>& cut() const noexcept { return cut_; }
  const kernels::optimizer_config& optimizer() const noexcept { return optimizer_; }

  /// The states of the stages. The id of each follows from that of `whole`. All hosts of a process
  /// that begin with one state share the result.
  std::vector<state_ptr> apart(const state_ptr& whole) const;
  /// The state of the whole model. Requires: one state for each stage, all of one epoch.
  model_state joined(std::span<const state_ptr> stages) const;

  /// A peer of this process has stepped to `state`. Returns the whole model's state if all stages
  /// have stepped to this epoch now, and null otherwise.
  state_ptr stepped(std::uint32_t stage, const state_ptr& state) const;

private:
  staged_workload() = default;

  std::shared_ptr<const workload> whole_;
  std::shared_ptr<const stage_model> cut_;
  kernels::optimizer_config optimizer_;
  mutable std::mutex guard_;                                        // guards what follows
  mutable state_ptr parted_;                                        // the last argument of apart()
  mutable std::vector<state_ptr> parts_;                            // and its result
  mutable std::map<std::uint64_t, std::vector<state_ptr>> reached_; // by epoch
};

} // namespace shoal::actors
