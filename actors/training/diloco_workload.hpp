// A workload whose step is the outer step of DiLoCo. It wraps the workload that peers take their
// local steps with. Its states are outer states: the outer parameters, and the outer optimizer's
// state in method_state. They have no inner optimizer, because each peer has its own. A step takes
// the mean of pseudo-gradients. Peers of one state take equal steps, and a peer that missed a step
// can repeat it.
//   epoch e: the round of fragment e modulo P (fragment_of_round), after interval(e) local steps
//   mean    [step_values()] the fragment's elements, then zeros up to the largest fragment's size
// Source: kernels/outer_optimizer.hpp, kernels/fragments.hpp.
#pragma once

#include "actors/training/workload.hpp"
#include "kernels/base/result.hpp"
#include "kernels/fragments.hpp"
#include "kernels/outer_optimizer.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace shoal::actors {

class diloco_workload final : public workload {
public:
  struct settings {
    kernels::outer_optimizer_config outer;
    kernels::fragment_schedule schedule; ///< `align` is applying
    kernels::fragment_pattern pattern = kernels::fragment_pattern::strided;
    /// False: step() is that of `inner`, and only initial() has an outer state (diloco_rule.hpp).
    bool outer_steps = true;
  };
  /// Errors: settings that are not valid, more fragments than `inner` has layers and single
  /// tensors.
  static result<std::shared_ptr<const diloco_workload>> make(std::shared_ptr<const workload> inner,
                                                             settings how);

  const workload& inner() const noexcept { return *inner_; }
  const kernels::fragment_schedule& schedule() const noexcept { return how_.schedule; }
  const std::vector<kernels::fragment>& fragments() const noexcept { return fragments_; }
  const kernels::fragment& fragment_of(std::uint64_t epoch) const;
  /// Local steps from the round before `epoch` to its own.
  std::uint64_t interval(std::uint64_t epoch) const;
  std::uint64_t method_state_bytes() const;

  /// anchor - local, in the elements of the fragment of `epoch`.
  payload contribution(std::uint64_t epoch, const payload& anchor, const payload& local) const;
  /// A mean of such, with zeros up to 4 step_values() bytes.
  payload padded(payload mean) const;
  /// `to` with the elements of the fragment of `epoch` from `from`.
  payload replaced(std::uint64_t epoch, const payload& from, const payload& to) const;
  /// `local` where the outer step of `epoch` has led to `outer`: alpha local + (1 - alpha) outer.
  payload blended(std::uint64_t epoch, const payload& outer, const payload& local) const;

  std::uint64_t value_count() const override { return inner_->value_count(); }
  std::vector<kernels::tensor_slot> layout() const override { return inner_->layout(); }
  std::uint64_t step_values() const override {
    return how_.outer_steps ? largest_ : inner_->step_values();
  }
  std::uint64_t sample_bytes() const override { return inner_->sample_bytes(); }
  bool is_size_only() const override { return inner_->is_size_only(); }
  /// The wrapped workload's, with the inner optimizer's state, and an outer state of zeros.
  model_state initial() const override;
  double accumulate(const model_state& at, std::span<const std::byte> samples, std::uint64_t count,
                    std::span<double> gradient_sum) const override {
    return inner_->accumulate(at, samples, count, gradient_sum);
  }
  std::shared_ptr<const workload> mislabelled() const override { return inner_->mislabelled(); }
  model_state step(const model_state& at, const payload& mean) const override;
  payload repaired(payload averaged) const override {
    return inner_->repaired(std::move(averaged));
  }

private:
  diloco_workload(std::shared_ptr<const workload> inner, settings how,
                  std::vector<kernels::fragment> fragments);

  std::shared_ptr<const workload> inner_;
  settings how_;
  std::vector<kernels::fragment> fragments_;
  std::uint64_t largest_ = 0;
};

} // namespace shoal::actors
