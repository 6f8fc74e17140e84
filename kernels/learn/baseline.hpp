// The result of one machine with one large batch: a plain loop without actors, network or groups,
// to compare a swarm with. Step k trains on the samples [k B, (k+1) B) in order, in micro-batches
// of fixed size. The micro-batches go round-robin to `lanes`. Each lane adds up its gradients in
// order, and the lanes are added in order. Lanes are part of the numerics and threads are not: the
// bits are the same for any number of threads.
#pragma once

#include "kernels/learn/model.hpp"
#include "kernels/optimizer.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace shoal::learn {

struct baseline_options {
  std::size_t target_batch = 128; ///< samples per step
  std::size_t micro_batch = 16;   ///< samples per call of accumulate_gradient
  std::int64_t steps = 0;
  std::size_t lanes = 2;
  std::size_t threads = 1; ///< more than `lanes` threads bring nothing
  /// Called after each step with its number (from 1) and training loss; false ends the loop.
  std::function<bool(std::int64_t, double)> on_step = {};
};

struct baseline_result {
  double first_loss = 0;      ///< held-out loss of the initial parameters
  double final_loss = 0;      ///< held-out loss of the last parameters
  std::vector<double> losses; ///< mean training loss of each step, before its update
  std::vector<float> parameters;
  std::vector<std::byte> state; ///< state of the optimizer
};

/// Writes sample `index` [model.sample_bytes()]; called from one thread only.
using sample_source = std::function<void(std::uint64_t index, std::span<std::byte> out)>;

/// Trains `initial` for options.steps steps and measures both losses on `held_out` [n x
/// model.sample_bytes()]. Requires: validate(optimizer), initial.size() == model.parameter_count(),
/// target_batch, micro_batch, lanes >= 1, all samples pass model.check_samples().
baseline_result train_baseline(const model& model, const kernels::optimizer_config& optimizer,
                               std::span<const float> initial, const sample_source& sample,
                               std::span<const std::byte> held_out,
                               const baseline_options& options);

} // namespace shoal::learn
