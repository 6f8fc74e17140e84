#include "actors/experts/expert_search.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>

namespace shoal::actors {

expert_search::expert_search(std::vector<std::vector<float>> scores, expert_search_limits limits)
    : scores_(std::move(scores)), limits_(limits) {
  SHOAL_CHECK(!scores_.empty() && limits_.best > 0, "a search has dimensions and a size");
  most_after_.resize(scores_.size() + 1);
  for (auto d = scores_.size(); d-- > 0;) {
    SHOAL_CHECK(!scores_[d].empty(), "a dimension has coordinates");
    most_after_[d] = most_after_[d + 1] + *std::max_element(scores_[d].begin(), scores_[d].end());
  }
  open_.emplace(-bound_of({}), expert_place{});
}

std::vector<std::vector<float>> expert_search::scores_of(const kernels::expert_gate& gate,
                                                         std::span<const float> row) {
  std::vector<std::vector<float>> out;
  for (std::size_t d = 0; d < gate.grid().size(); ++d) {
    const auto of = row.subspan(gate.key_of(d, 0), gate.grid()[d]);
    out.emplace_back(of.begin(), of.end());
  }
  return out;
}

double expert_search::score_of(const expert_place& place) const {
  double out = 0;
  for (std::size_t d = 0; d < place.size(); ++d) out += scores_[d][place[d]];
  return out;
}

double expert_search::bound_of(const expert_place& place) const {
  return score_of(place) + most_after_[place.size()];
}

bool expert_search::is_over() const {
  if (open_.empty() || look_ups_ >= limits_.most_look_ups) return true;
  if (found_.size() < limits_.best) return false;
  // A bound is a sum in another order than a logit, so equal ones may differ by rounding.
  const auto last = std::next(found_.begin(), static_cast<std::ptrdiff_t>(limits_.best) - 1);
  return open_.begin()->first > last->first + 1e-9;
}

std::optional<expert_place> expert_search::wanted() const {
  if (is_over()) return std::nullopt;
  return open_.begin()->second;
}

void expert_search::give(const std::vector<std::uint32_t>& alive) {
  SHOAL_CHECK(!is_over(), "a search that is over needs nothing");
  const auto prefix = open_.begin()->second;
  open_.erase(open_.begin());
  ++look_ups_;
  const auto dimension = prefix.size();
  for (const auto at : alive) {
    if (at >= scores_[dimension].size()) continue;
    auto next = prefix;
    next.push_back(at);
    if (next.size() == scores_.size())
      found_.emplace(-score_of(next), std::move(next));
    else
      open_.emplace(-bound_of(next), std::move(next));
  }
  cut_ = look_ups_ >= limits_.most_look_ups && !open_.empty();
}

std::vector<expert_search::found> expert_search::best() const {
  std::vector<found> out;
  for (const auto& [negative, place] : found_) {
    if (out.size() == limits_.best) break;
    out.push_back({-negative, place});
  }
  return out;
}

} // namespace shoal::actors
