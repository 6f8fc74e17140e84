#include "kernels/learn/baseline.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <thread>

namespace shoal::learn {

namespace {

struct lane {
  std::vector<float> gradient;
  double loss = 0;
};

/// Runs the micro-batches lane_index, lane_index + lanes, ... in that order.
void run_lane(const model& model, std::span<const float> parameters,
              std::span<const std::byte> batch, const baseline_options& options,
              std::size_t lane_index, lane& out) {
  const auto sample_bytes = model.sample_bytes();
  std::fill(out.gradient.begin(), out.gradient.end(), 0.0F);
  out.loss = 0;
  for (std::size_t first = lane_index * options.micro_batch; first < options.target_batch;
       first += options.lanes * options.micro_batch) {
    const auto count = std::min(options.micro_batch, options.target_batch - first);
    out.loss += model.accumulate_gradient(
        parameters, batch.subspan(first * sample_bytes, count * sample_bytes), count, out.gradient);
  }
}

} // namespace

baseline_result train_baseline(const model& model, const kernels::optimizer_config& optimizer,
                               std::span<const float> initial, const sample_source& sample,
                               std::span<const std::byte> held_out,
                               const baseline_options& options) {
  SHOAL_CHECK(initial.size() == model.parameter_count(),
              "the initial parameters have the model's size");
  SHOAL_CHECK(options.target_batch >= 1 && options.micro_batch >= 1 && options.lanes >= 1,
              "batches are not empty");
  const auto sample_bytes = model.sample_bytes();
  const auto held_out_count = held_out.size() / sample_bytes;
  baseline_result result;
  result.parameters.assign(initial.begin(), initial.end());
  result.state.resize(state_bytes(optimizer, initial.size()));
  result.first_loss = model.mean_loss(initial, held_out, held_out_count);

  std::vector<lane> lanes(options.lanes);
  for (auto& l : lanes) l.gradient.resize(initial.size());
  std::vector<std::byte> batch(options.target_batch * sample_bytes);
  const auto threads = std::clamp<std::size_t>(options.threads, 1, options.lanes);
  for (std::int64_t k = 0; k < options.steps; ++k) {
    for (std::size_t i = 0; i < options.target_batch; ++i)
      sample(static_cast<std::uint64_t>(k) * options.target_batch + i,
             std::span(batch).subspan(i * sample_bytes, sample_bytes));
    auto work = [&](std::size_t thread) {
      for (std::size_t l = thread; l < lanes.size(); l += threads)
        run_lane(model, result.parameters, batch, options, l, lanes[l]);
    };
    {
      std::vector<std::jthread> others;
      for (std::size_t thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
      work(0);
    }
    double loss = 0;
    auto& gradient = lanes[0].gradient;
    for (std::size_t l = 0; l < lanes.size(); ++l) {
      loss += lanes[l].loss;
      if (l > 0)
        for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += lanes[l].gradient[i];
    }
    const auto samples = static_cast<float>(options.target_batch);
    for (auto& g : gradient) g /= samples;
    step(optimizer, k + 1, gradient, result.parameters, std::span(result.state), model.layout());
    result.losses.push_back(loss / static_cast<double>(options.target_batch));
    if (options.on_step && !options.on_step(k + 1, result.losses.back())) break;
  }
  result.final_loss = model.mean_loss(result.parameters, held_out, held_out_count);
  return result;
}

} // namespace shoal::learn
