#include "actors/trust/chain.hpp"

#include "kernels/base/digest.hpp"

#include <algorithm>
#include <iterator>

namespace shoal::actors {

state_id state_after(const state_id& before, const group_id& group, const id128& version) {
  hasher h;
  h.add(std::string_view{"shoal.state"});
  for (const auto* id : {&before, &group, &version}) h.add(id->high).add(id->low);
  return state_id::from(h.finish());
}

bool chain_weight::leads(const chain_weight& other) const noexcept {
  if (supporters != other.supporters) return supporters > other.supporters;
  if (steps != other.steps) return steps > other.steps;
  return head < other.head;
}

chain_weight weight_of(const chain_point& from, std::span<const step_ptr> steps) {
  std::set<member_id> who;
  for (const auto& step : steps) who.insert(step->supporters.begin(), step->supporters.end());
  return {who.size(), steps.size(), steps.empty() ? from.state : steps.back()->after.state};
}

result<void> chain::extend(step_ptr step) {
  if (step->before != head()) return failure{"the step does not lead on from the chain's head"};
  if (step->after.epoch != head().epoch + 1)
    return failure{"the step does not lead to the next epoch"};
  steps_.push_back(std::move(step));
  if (steps_.size() >= most_steps) {
    const auto kept = steps_.begin() + static_cast<std::ptrdiff_t>(most_steps / 2);
    start_ = (*std::prev(kept))->after;
    steps_.erase(steps_.begin(), kept);
  }
  return {};
}

step_ptr chain::step_to(std::uint64_t epoch) const {
  if (epoch <= start_.epoch || epoch > head().epoch) return nullptr;
  return steps_[static_cast<std::size_t>(epoch - start_.epoch - 1)];
}

bool chain::contains(const chain_point& point) const {
  if (point.epoch == start_.epoch) return point == start_;
  const auto step = step_to(point.epoch);
  return step && step->after == point;
}

std::vector<step_ptr> chain::after(const chain_point& point) const {
  return {steps_.begin() + static_cast<std::ptrdiff_t>(point.epoch - start_.epoch), steps_.end()};
}

void chain::cut(const chain_point& point) {
  steps_.resize(static_cast<std::size_t>(point.epoch - start_.epoch));
}

std::vector<chain_point> chain::locator() const {
  std::vector<chain_point> out;
  std::size_t back = 0; // steps before the head
  for (std::size_t stride = 1; back < steps_.size(); back += stride) {
    out.push_back(steps_[steps_.size() - 1 - back]->after);
    if (out.size() >= 8) stride *= 2;
  }
  out.push_back(start_);
  return out;
}

std::optional<chain_point> chain::common(std::span<const chain_point> locator) const {
  const auto found = std::find_if(locator.begin(), locator.end(),
                                  [this](const chain_point& point) { return contains(point); });
  if (found == locator.end()) return std::nullopt;
  return *found;
}

} // namespace shoal::actors
