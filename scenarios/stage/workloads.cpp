#include "scenarios/stage/workloads.hpp"

#include <charconv>

#include "scenarios/schema/start_from.hpp"
#include "scenarios/stage/workload_convex.hpp"
#include "scenarios/stage/workload_timing.hpp"
#if SHOAL_WITH_LEARN
#include "kernels/learn/transformer.hpp"
#include "scenarios/stage/workload_transformer.hpp"
#endif

namespace shoal::scenarios {

result<std::unique_ptr<prepared_workload>> prepare_workload(const scenario& from) {
  switch (from.workload.kind) {
    case workload_kind::timing: return prepare_timing(from);
    case workload_kind::quadratic:
    case workload_kind::logistic: return prepare_convex(from);
    case workload_kind::transformer:
#if SHOAL_WITH_LEARN
      return prepare_transformer(from);
#else
      return failure{"workload.kind 'transformer' needs libtorch, which this build was made without"};
#endif
  }
  return failure{"unknown workload"};
}

result<void> save_checkpoint(const scenario& from, const kernels::optimizer_config& optimizer, const std::string& data_digest,
                             const actors::model_state& state, std::uint64_t data_from, const std::string& path) {
  auto out = shape_of(from);
  if (!out) return failure{out.error()};
  out->optimizer = optimizer;
  out->epoch = state.epoch;
  out->step = state.step;
  out->samples = state.samples;
  out->data_from = data_from;
  out->state_id = state.id.hex();
  out->notes = {{"scenario", from.name}, {"seed", std::to_string(from.seed)}};
  if (!data_digest.empty()) out->notes["data_digest"] = data_digest;
  const auto parameters = state.parameters.floats();
  out->parameters.assign(parameters.begin(), parameters.end());
  if (!state.optimizer.empty()) {
    const auto moments = state.optimizer.bytes();
    out->optimizer_state.assign(moments.begin(), moments.end());
  }
  return learn::save(*out, path);
}

result<std::optional<training_start>> load_training_start(const scenario& from) {
  if (from.training.start_from.empty()) return std::optional<training_start>{};
  auto saved = load_start(from, from.training.start_from);
  if (!saved) return failure{saved.error()};
  training_start out;
  out.data_from = saved->data_from;
  auto& state = out.state;
  state.epoch = saved->epoch;
  state.step = saved->step;
  state.samples = saved->samples;
  const auto& id = saved->state_id;
  std::from_chars(id.data(), id.data() + 16, state.id.high, 16);
  std::from_chars(id.data() + 16, id.data() + 32, state.id.low, 16);
  state.parameters = payload{std::move(saved->parameters)};
  state.optimizer = payload{std::move(saved->optimizer_state)};
  return std::optional<training_start>{std::move(out)};
}

void prepare_compute_thread() {
#if SHOAL_WITH_LEARN
  learn::use_one_thread();
#endif
}

}  // namespace shoal::scenarios
