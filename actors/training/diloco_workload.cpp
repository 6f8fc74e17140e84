#include "actors/training/diloco_workload.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

namespace {

std::vector<float> gathered(const kernels::fragment& which, const payload& of) {
  std::vector<float> out(kernels::size_of(which));
  kernels::gather(which, of.floats(), out);
  return out;
}

std::vector<float> copy_of(const payload& what) {
  return {what.floats().begin(), what.floats().end()};
}

} // namespace

diloco_workload::diloco_workload(std::shared_ptr<const workload> inner, settings how,
                                 std::vector<kernels::fragment> fragments)
    : inner_(std::move(inner)), how_(how), fragments_(std::move(fragments)) {
  for (const auto& each : fragments_)
    largest_ = std::max<std::uint64_t>(largest_, kernels::size_of(each));
}

result<std::shared_ptr<const diloco_workload>>
diloco_workload::make(std::shared_ptr<const workload> inner, settings how) {
  how.schedule.align = kernels::fragment_align::applying;
  if (auto sound = kernels::validate(how.outer); !sound) return failure{sound.error()};
  if (auto sound = kernels::validate(how.schedule); !sound) return failure{sound.error()};
  const auto count = static_cast<std::size_t>(how.schedule.fragments);
  const auto layout = inner->layout();
  auto fragments = layout.size() < 2 ? kernels::make_fragments(inner->value_count(), count)
                                     : kernels::make_fragments(layout, count, how.pattern);
  if (!fragments) return failure{fragments.error()};
  return std::shared_ptr<const diloco_workload>(
      new diloco_workload(std::move(inner), how, std::move(*fragments)));
}

const kernels::fragment& diloco_workload::fragment_of(std::uint64_t epoch) const {
  return fragments_[kernels::fragment_of_round(how_.schedule, static_cast<std::int64_t>(epoch))];
}

std::uint64_t diloco_workload::interval(std::uint64_t epoch) const {
  const auto& s = how_.schedule;
  const auto k =
      static_cast<std::int64_t>(kernels::fragment_of_round(s, static_cast<std::int64_t>(epoch))) +
      1;
  return static_cast<std::uint64_t>(k * s.period / s.fragments - (k - 1) * s.period / s.fragments);
}

std::uint64_t diloco_workload::method_state_bytes() const {
  return 4 * kernels::outer_state_size(how_.outer, value_count());
}

payload diloco_workload::contribution(std::uint64_t epoch, const payload& anchor,
                                      const payload& local) const {
  const auto& which = fragment_of(epoch);
  if (is_size_only()) return payload::size_only(4 * kernels::size_of(which));
  auto out = gathered(which, local);
  kernels::pseudo_gradient(gathered(which, anchor), out, out);
  return payload{std::move(out)};
}

payload diloco_workload::padded(payload mean) const {
  if (mean.size() == 4 * largest_) return mean;
  if (mean.is_size_only()) return payload::size_only(4 * largest_);
  auto out = copy_of(mean);
  out.resize(largest_);
  return payload{std::move(out)};
}

payload diloco_workload::replaced(std::uint64_t epoch, const payload& from,
                                  const payload& to) const {
  if (is_size_only() || fragments_.size() == 1) return from;
  auto out = copy_of(to);
  kernels::scatter(fragment_of(epoch), gathered(fragment_of(epoch), from), out);
  return payload{std::move(out)};
}

payload diloco_workload::blended(std::uint64_t epoch, const payload& outer,
                                 const payload& local) const {
  if (is_size_only()) return local;
  if (fragments_.size() == 1 && how_.schedule.alpha == 0) return outer;
  const auto& which = fragment_of(epoch);
  auto out = copy_of(local);
  auto part = gathered(which, local);
  kernels::blend(how_.schedule.alpha, gathered(which, outer), part);
  kernels::scatter(which, part, out);
  return payload{std::move(out)};
}

model_state diloco_workload::initial() const {
  auto out = inner_->initial();
  const auto bytes = method_state_bytes();
  if (bytes > 0)
    out.method_state = is_size_only() ? payload::size_only(bytes)
                                      : payload{std::vector<float>(bytes / sizeof(float))};
  return out;
}

model_state diloco_workload::step(const model_state& at, const payload& mean) const {
  if (!how_.outer_steps) return inner_->step(at, mean);
  SHOAL_CHECK(mean.size() == 4 * largest_, "the mean of a fragment, padded");
  auto out = at;
  out.optimizer = {};
  ++out.step;
  const auto state_size = kernels::outer_state_size(how_.outer, value_count());
  if (is_size_only()) {
    if (state_size > 0) out.method_state = payload::size_only(method_state_bytes());
    return out;
  }
  const auto& which = fragment_of(at.epoch);
  const auto n = kernels::size_of(which);
  auto parameters = copy_of(at.parameters);
  // A state without one begins with zeros: it comes from a checkpoint of another method.
  auto state = at.method_state.empty() ? std::vector<float>(state_size) : copy_of(at.method_state);
  SHOAL_CHECK(state.size() == state_size, "an outer state of this workload");
  auto part = gathered(which, at.parameters);
  // The state is one vector, or two, of the parameters' length.
  const auto vectors = state_size == 0 ? 0 : state_size / value_count();
  std::vector<float> state_part(vectors * n);
  for (std::size_t v = 0; v < vectors; ++v)
    kernels::gather(which, std::span(state).subspan(v * value_count(), value_count()),
                    std::span(state_part).subspan(v * n, n));
  // The outer steps of this fragment, counted from 1.
  const auto number = static_cast<std::int64_t>(at.epoch / fragments_.size()) + 1;
  kernels::outer_step(how_.outer, number, mean.floats().first(n), part, state_part);
  kernels::scatter(which, part, parameters);
  for (std::size_t v = 0; v < vectors; ++v)
    kernels::scatter(which, std::span(state_part).subspan(v * n, n),
                     std::span(state).subspan(v * value_count(), value_count()));
  out.parameters = payload{std::move(parameters)};
  if (state_size > 0) out.method_state = payload{std::move(state)};
  return out;
}

} // namespace shoal::actors
