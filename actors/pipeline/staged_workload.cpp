#include "actors/pipeline/staged_workload.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/learn/layered_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shoal::actors {

namespace {

// Stages differ by one epoch, unless a process sees the steps of some stages only.
constexpr std::size_t kept_epochs = 4;

using slots = std::vector<kernels::tensor_slot>;

/// The vectors of an optimizer's state: those of all parameters, one after the other.
std::size_t vectors_in(std::span<const float> state, std::size_t parameters) {
  return parameters == 0 ? 0 : state.size() / parameters;
}

std::vector<float> state_of_piece(const slots& whole, std::span<const float> state,
                                  const slots& piece) {
  const auto values = kernels::end_of(whole);
  std::vector<float> out;
  for (std::size_t i = 0; i < vectors_in(state, values); ++i) {
    const auto part = learn::gather(whole, state.subspan(i * values, values), piece);
    SHOAL_CHECK(part.ok(), "make() has checked the tensors");
    out.insert(out.end(), part->begin(), part->end());
  }
  return out;
}

void add_piece(const slots& piece, std::span<const float> from, const slots& whole,
               std::span<float> into) {
  const auto values = kernels::end_of(piece), all = kernels::end_of(whole);
  for (std::size_t i = 0; i < vectors_in(from, values); ++i) {
    const auto done = learn::scatter_add(piece, from.subspan(i * values, values), whole,
                                         into.subspan(i * all, all));
    SHOAL_CHECK(done.ok(), "make() has checked the tensors");
  }
}

} // namespace

state_id whole_state_id(std::span<const state_id> stages) {
  hasher name;
  name.add(std::string_view{"shoal.stages"});
  for (const auto& one : stages) name.add(one.high).add(one.low);
  return state_id::from(name.finish());
}

std::vector<unfit_for_stages> unfit_fields(const kernels::optimizer_config& optimizer) {
  std::vector<unfit_for_stages> out;
  if (optimizer.clip_norm > 0)
    out.push_back({"clip_norm", "clip_norm needs the norm of the whole gradient, which no host of "
                                "a pipeline has: leave it out"});
  if (!kernels::float_state(optimizer.kind))
    out.push_back(
        {"kind", fmt::format("the state of {} is coded in blocks, and a stage may begin within "
                             "one: take {}",
                             to_string(optimizer.kind),
                             optimizer.kind == kernels::optimizer_kind::lamb8 ? "lamb" : "adamw")});
  return out;
}

result<std::shared_ptr<const staged_workload>>
staged_workload::make(std::shared_ptr<const workload> whole, std::shared_ptr<const stage_model> cut,
                      const kernels::optimizer_config& optimizer) {
  if (const auto unfit = unfit_fields(optimizer); !unfit.empty()) return failure{unfit.front().why};
  auto out = std::shared_ptr<staged_workload>(new staged_workload);
  out->whole_ = std::move(whole);
  out->cut_ = std::move(cut);
  out->optimizer_ = optimizer;
  if (!out->is_size_only()) {
    const auto all = out->layout();
    std::size_t values = 0;
    const std::vector<float> none(out->value_count());
    for (std::uint32_t s = 0; s < out->cut_->stages(); ++s) {
      const auto part = learn::gather(all, none, out->cut_->tensors_of(s));
      if (!part) return failure{part.error()};
      values += part->size();
    }
    if (values != none.size())
      return failure{
          fmt::format("the stages have {} of the model's {} parameters", values, none.size())};
  }
  return std::shared_ptr<const staged_workload>(std::move(out));
}

std::vector<state_ptr> staged_workload::apart(const state_ptr& whole) const {
  const std::lock_guard lock(guard_);
  if (parted_ == whole) return parts_;
  const auto all = layout();
  std::vector<state_ptr> out;
  for (std::uint32_t s = 0; s < cut_->stages(); ++s) {
    auto part = std::make_shared<model_state>(*whole);
    const auto& piece = cut_->tensors_of(s);
    if (is_size_only()) {
      part->parameters = payload::size_only(sizeof(float) * kernels::end_of(piece));
      part->optimizer = payload::size_only(sizeof(float) *
                                           kernels::state_size(optimizer_, kernels::end_of(piece)));
    } else {
      part->parameters = payload{state_of_piece(all, whole->parameters.floats(), piece)};
      part->optimizer = payload{state_of_piece(all, whole->optimizer.floats(), piece)};
    }
    hasher name;
    name.add(std::string_view{"shoal.stage"}).add(whole->id.high).add(whole->id.low).add(s);
    part->id = state_id::from(name.finish());
    out.push_back(std::move(part));
  }
  parted_ = whole;
  return parts_ = std::move(out);
}

model_state staged_workload::joined(std::span<const state_ptr> stages) const {
  SHOAL_CHECK(stages.size() == cut_->stages(), "a whole model has all of its stages");
  model_state out = *stages.front();
  std::vector<state_id> ids;
  for (const auto& one : stages) {
    SHOAL_CHECK(one->epoch == out.epoch, "the stages are those of one epoch");
    ids.push_back(one->id);
    out.samples = std::max(out.samples, one->samples);
  }
  out.id = whole_state_id(ids);
  if (is_size_only()) {
    out.parameters = payload::size_only(sizeof(float) * value_count());
    out.optimizer =
        payload::size_only(sizeof(float) * kernels::state_size(optimizer_, value_count()));
    return out;
  }
  const auto all = layout();
  std::vector<float> parameters(value_count());
  std::vector<float> optimizer(kernels::state_size(optimizer_, value_count()));
  for (std::uint32_t s = 0; s < cut_->stages(); ++s) {
    const auto& piece = cut_->tensors_of(s);
    add_piece(piece, stages[s]->parameters.floats(), all, parameters);
    add_piece(piece, stages[s]->optimizer.floats(), all, optimizer);
  }
  out.parameters = payload{std::move(parameters)};
  out.optimizer = payload{std::move(optimizer)};
  return out;
}

state_ptr staged_workload::stepped(std::uint32_t stage, const state_ptr& state) const {
  std::vector<state_ptr> whole;
  {
    const std::lock_guard lock(guard_);
    auto& at = reached_[state->epoch];
    at.resize(cut_->stages());
    if (at[stage]) return nullptr; // another peer of the stage was the first one
    at[stage] = state;
    if (std::any_of(at.begin(), at.end(), [](const auto& one) { return !one; })) {
      if (reached_.size() > kept_epochs) reached_.erase(reached_.begin());
      return nullptr;
    }
    whole = at;
    // The slots stay, so that later peers of these stages make no second state.
    reached_.erase(reached_.begin(), reached_.find(state->epoch));
  }
  return std::make_shared<const model_state>(joined(whole));
}

} // namespace shoal::actors
