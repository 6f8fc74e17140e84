// What a peer computes, behind one interface so that the same peer drives all of them: `timing`
// (sizes and durations, no numbers), `quadratic` (Eigen, for averaging studies) and torch models.
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

/// Parameters and optimizer state after `epoch` steps. Immutable: peers that hold the same bits
/// share one copy.
struct model_state {
  std::uint64_t epoch = 0;
  state_id id;
  std::uint64_t step = 0;    ///< optimizer steps taken; equals epoch unless restarted
  std::uint64_t samples = 0; ///< samples in all steps that led here (orders branches)
  payload parameters;        ///< value_count floats, or hollow
  payload optimizer;         ///< floats, or coded by the workload, or hollow, or empty
  payload method_state; ///< the training method's own, such as an outer momentum; empty for most
                        ///< methods

  std::uint64_t bytes() const noexcept {
    return parameters.size() + optimizer.size() + method_state.size();
  }
};
using state_ptr = std::shared_ptr<const model_state>;

/// Thread safety: all functions may be called from several compute threads at once.
class workload {
public:
  virtual ~workload() = default;

  /// Length of a gradient.
  virtual std::uint64_t value_count() const = 0;
  /// The tensors that it is made of, in their order; empty: one.
  virtual std::vector<kernels::tensor_slot> layout() const { return {}; }
  /// How gradients are averaged in two rounds; null: in one, as they are.
  virtual const kernels::power_sgd* low_rank() const { return nullptr; }
  /// Length of what step() takes.
  virtual std::uint64_t step_values() const { return value_count(); }
  /// Bytes of one streamed sample.
  virtual std::uint64_t sample_bytes() const = 0;
  virtual bool hollow() const { return false; }

  /// The state every peer starts from; the same bits everywhere for one seed.
  virtual model_state initial() const = 0;

  /// Adds the gradient of the sum of the samples' mean losses to `gradient_sum` [value_count] and
  /// returns that sum. `samples` holds count * sample_bytes() bytes.
  virtual double accumulate(const model_state& at, std::span<const std::byte> samples,
                            std::uint64_t count, std::span<double> gradient_sum) const = 0;

  /// One optimizer step with the mean gradient, or, with low_rank(), with the means of both rounds,
  /// in their order; sets parameters, optimizer and step of the result.
  virtual model_state step(const model_state& at, const payload& mean_gradient) const = 0;

  /// An average of optimizers' states that came through a lossy codec, made one from which a step
  /// can be taken.
  virtual payload mended(payload averaged) const { return averaged; }
};

std::vector<std::uint64_t> sizes_of(std::span<const kernels::tensor_slot> layout);

/// A sum of gradients over so many samples, as floats. Requires: samples > 0.
payload mean_gradient(std::span<const double> sum, std::uint64_t samples);

/// hash of the bytes of a state; what a joiner checks its download against.
id128 content_of(const model_state& state);

} // namespace shoal::actors
