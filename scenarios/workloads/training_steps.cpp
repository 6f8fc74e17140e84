#include "scenarios/workloads/training_steps.hpp"

#include "actors/training/contribution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
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

actors::model_state trained_alone(const actors::workload& work, const actors::sample_source& source,
                                  std::uint64_t micro_batch, std::uint64_t batch,
                                  std::uint64_t steps) {
  auto state = work.initial();
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < steps; ++i) {
    std::vector<double> sum(work.value_count());
    for (std::uint64_t done = 0; done < batch;) {
      const auto now = std::min<std::uint64_t>(micro_batch, batch - done);
      std::vector<std::byte> some(now * work.sample_bytes());
      for (std::uint64_t s = 0; s < now; ++s)
        source.read(next++, std::span(some).subspan(s * work.sample_bytes(), work.sample_bytes()));
      work.accumulate(state, some, now, sum);
      done += now;
    }
    state = work.step(state, actors::mean_gradient(sum, batch));
  }
  return state;
}

} // namespace shoal::scenarios
