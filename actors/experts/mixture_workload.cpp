#include "actors/experts/mixture_workload.hpp"

#include "kernels/base/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shoal::actors {

result<std::shared_ptr<const mixture_workload>>
mixture_workload::make(std::shared_ptr<const workload> whole,
                       std::shared_ptr<const learn::mixture_model> model,
                       const kernels::optimizer_config& optimizer) {
  if (!kernels::float_state(optimizer.kind))
    return failure{fmt::format("the state of {} is coded in blocks, and an expert may begin within "
                               "one: take adamw, lamb or sgd",
                               to_string(optimizer.kind))};
  SHOAL_CHECK(whole->value_count() == model->parameter_count(), "the workload is the model's");
  auto out = std::shared_ptr<mixture_workload>(new mixture_workload);
  out->whole_ = std::move(whole);
  out->model_ = std::move(model);
  out->optimizer_ = optimizer;
  return std::shared_ptr<const mixture_workload>(std::move(out));
}

expert_id mixture_workload::id_of(std::size_t number) const {
  return {static_cast<std::uint32_t>(model_->layer_of(number)), model_->place_of(number)};
}

expert_state mixture_workload::part_of(const model_state& whole, std::size_t first,
                                       std::size_t size) const {
  const auto parameters = whole.parameters.floats(), state = whole.optimizer.floats();
  const auto copy = [&](std::span<const float> from, std::vector<float>& into) {
    const auto part = from.subspan(first, size);
    into.insert(into.end(), part.begin(), part.end());
  };
  expert_state out;
  out.steps = whole.step;
  copy(parameters, out.parameters);
  // The optimizer's state has some vectors of all parameters.
  for (std::size_t at = 0; at < state.size(); at += parameters.size())
    copy(state.subspan(at, parameters.size()), out.optimizer);
  return out;
}

expert_state mixture_workload::trunk_of(const model_state& whole) const {
  return part_of(whole, 0, model_->trunk_size());
}

expert_state mixture_workload::expert_of(const model_state& whole, const expert_id& which) const {
  const auto size = model_->block()->parameter_count();
  return part_of(whole, model_->trunk_size() + model_->number_of(which.layer, which.place) * size,
                 size);
}

model_state
mixture_workload::joined(const expert_state& trunk,
                         std::span<const std::shared_ptr<const expert_state>> experts) const {
  SHOAL_CHECK(experts.size() == model_->experts(), "a whole model has all of its experts");
  std::vector<float> parameters(value_count());
  std::vector<float> optimizer(kernels::state_size(optimizer_, parameters.size()));
  const auto put = [&](const expert_state& from, std::size_t first) {
    const auto size = from.parameters.size();
    const auto copy = [](std::span<const float> some, std::span<float> into) {
      std::copy(some.begin(), some.end(), into.begin());
    };
    copy(from.parameters, std::span(parameters).subspan(first, size));
    for (std::size_t at = 0, own = 0; at < optimizer.size(); at += parameters.size(), own += size)
      copy(std::span(from.optimizer).subspan(own, size),
           std::span(optimizer).subspan(at + first, size));
  };
  put(trunk, 0);
  auto next = model_->trunk_size();
  for (const auto& each : experts) {
    put(*each, next);
    next += each->parameters.size();
  }
  model_state out;
  out.step = trunk.steps;
  out.parameters = payload{std::move(parameters)};
  out.optimizer = payload{std::move(optimizer)};
  return out;
}

bool mixture_workload::claims(std::uint64_t epoch) const {
  auto before = claimed_.load();
  while (before < epoch)
    if (claimed_.compare_exchange_weak(before, epoch)) return true;
  return false;
}

} // namespace shoal::actors
