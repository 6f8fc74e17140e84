#include "scenarios/workloads/training_steps.hpp"

#include "actors/training/contribution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace shoal::scenarios {

void check_decay(const scenario& what, const char* model, checking& report) {
  const auto& optimizer = what.training.optimizer;
  if (report.sound({"training.optimizer.kind", "training.optimizer.weight_decay"}) &&
      !kernels::float_state(optimizer.kind) && optimizer.weight_decay > 0)
    report.error("training.optimizer.weight_decay",
                 fmt::format("{} leaves biases without weight decay, which {} cannot: it codes "
                             "all moments together; use lamb or adamw, or weight_decay 0",
                             model, kernels::to_string(optimizer.kind)));
  if (report.sound({"training.optimizer.kind", "training.optimizer.adapt_undecayed"}) &&
      optimizer.kind != kernels::optimizer_kind::lamb && !optimizer.adapt_undecayed)
    report.error("training.optimizer.adapt_undecayed",
                 fmt::format("only lamb moves tensors by their own norm and can leave some out; "
                             "{} does not",
                             kernels::to_string(optimizer.kind)));
}

double loss_alone(const prepared_workload& of, std::uint64_t micro_batch, std::uint64_t batch,
                  const reference_options& how) {
  const auto work = of.work();
  const auto source = of.source();
  const auto bytes = work->sample_bytes();
  const auto micro_batches = (batch + micro_batch - 1) / micro_batch;
  // One gradient for each thread.
  std::vector<std::vector<double>> lanes(std::clamp<std::uint64_t>(how.threads, 1, micro_batches));
  std::vector<std::byte> samples(batch * bytes);
  auto state = work->initial();
  for (std::uint64_t i = 0; i < how.steps; ++i) {
    for (std::uint64_t s = 0; s < batch; ++s)
      source->read(i * batch + s, std::span(samples).subspan(s * bytes, bytes));
    const auto lane = [&](std::size_t l, std::uint64_t first) {
      if (first >= batch) return lanes[l].clear();
      prepare_compute_thread();
      const auto now = std::min(micro_batch, batch - first);
      lanes[l].assign(work->value_count(), 0.0);
      work->accumulate(state, std::span(samples).subspan(first * bytes, now * bytes), now,
                       lanes[l]);
    };
    std::vector<double> sum(work->value_count());
    for (std::uint64_t first = 0; first < batch; first += lanes.size() * micro_batch) {
      {
        std::vector<std::jthread> others;
        for (std::size_t l = 1; l < lanes.size(); ++l)
          others.emplace_back(lane, l, first + l * micro_batch);
        lane(0, first);
      }
      for (const auto& gradient : lanes)
        for (std::size_t v = 0; v < gradient.size(); ++v) sum[v] += gradient[v];
    }
    state = work->step(state, actors::mean_gradient(sum, batch));
    if (how.on_step && !how.on_step(i + 1)) return std::numeric_limits<double>::quiet_NaN();
  }
  return of.held_out_loss(state);
}

} // namespace shoal::scenarios
