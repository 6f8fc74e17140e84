// The computation of a peer. One interface lets the same peer drive all workloads: `timing` (sizes
// and durations, no numbers), `quadratic` (Eigen, for averaging studies) and torch models.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/payload.hpp"
#include "kernels/compress/power_sgd.hpp"
#include "kernels/layout.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shoal::actors {

/// Parameters and optimizer state after `epoch` steps. Immutable: peers with the same bits share
/// one copy.
struct model_state {
  std::uint64_t epoch = 0;
  state_id id;
  std::uint64_t step = 0;    ///< optimizer steps taken; equals epoch unless restarted
  std::uint64_t samples = 0; ///< samples in all steps that led here; orders branches
  payload parameters;        ///< value_count floats, or size-only
  payload optimizer;         ///< floats, coded by the workload, size-only, or empty
  /// The training method's own state, such as an outer momentum; empty for most methods.
  payload method_state;

  std::uint64_t bytes() const noexcept {
    return parameters.size() + optimizer.size() + method_state.size();
  }
};
using state_ptr = std::shared_ptr<const model_state>;

/// Thread safety: compute threads may call all functions concurrently.
class workload {
public:
  virtual ~workload() = default;

  /// The length of a gradient.
  virtual std::uint64_t value_count() const = 0;
  /// The tensors of the gradient, in order; empty if there is only one.
  virtual std::vector<kernels::tensor_slot> layout() const { return {}; }
  /// How gradients are averaged in two rounds; null: in one round, unchanged.
  virtual const kernels::power_sgd* low_rank() const { return nullptr; }
  /// The length of the argument of step().
  virtual std::uint64_t step_values() const { return value_count(); }
  /// The size of one streamed sample.
  virtual std::uint64_t sample_bytes() const = 0;
  virtual bool is_size_only() const { return false; }

  /// The state from which every peer starts; for one seed the same bits everywhere.
  virtual model_state initial() const = 0;

  /// Adds the gradient of the sum of the samples' mean losses to `gradient_sum` [value_count] and
  /// returns that sum. `samples` holds count * sample_bytes() bytes.
  virtual double accumulate(const model_state& at, std::span<const std::byte> samples,
                            std::uint64_t count, std::span<double> gradient_sum) const = 0;

  /// The same workload with a wrong label for each sample; null if samples have no labels.
  virtual std::shared_ptr<const workload> mislabelled() const { return nullptr; }

  /// One optimizer step with the mean gradient. With low_rank(), the argument is the means of both
  /// rounds, in order. Sets parameters, optimizer and step of the result, and method_state if the
  /// step changes it.
  virtual model_state step(const model_state& at, const payload& mean_gradient) const = 0;

  /// Repairs an average of optimizer states that passed a lossy codec, so that a step can be taken
  /// from it.
  virtual payload repaired(payload averaged) const { return averaged; }
};

std::vector<std::uint64_t> sizes_of(std::span<const kernels::tensor_slot> layout);

/// The mean of `samples` gradients, as floats, from their sum. Requires: samples > 0.
payload mean_gradient(std::span<const double> sum, std::uint64_t samples);

/// A hash of the bytes of a state. A joiner compares its download with it.
id128 content_of(const model_state& state);

} // namespace shoal::actors
