#include "actors/pipeline/stage_votes.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace shoal::actors {

std::uint64_t reached_by_half(std::vector<std::uint64_t> epochs) {
  const auto half = epochs.begin() + static_cast<std::ptrdiff_t>((epochs.size() - 1) / 2);
  std::nth_element(epochs.begin(), half, epochs.end(), std::greater<>{});
  return *half;
}

std::uint64_t most_epoch_beside(std::vector<std::uint64_t> others) {
  constexpr auto any = ~std::uint64_t{0};
  constexpr std::uint64_t most_ahead = 2;
  if (others.empty()) return any;
  const auto reached = reached_by_half(std::move(others));
  return reached + std::min(most_ahead, any - reached);
}

void stage_votes::add(member_id who, const announced_state& what) {
  auto& vote = votes_.try_emplace(who, what).first->second;
  vote = std::max(vote, what);
}

std::optional<std::uint64_t> stage_votes::reached() const {
  if (votes_.empty()) return std::nullopt;
  std::vector<std::uint64_t> epochs;
  for (const auto& [who, what] : votes_) epochs.push_back(what.epoch);
  return reached_by_half(std::move(epochs));
}

std::optional<announced_state> stage_votes::leading() const {
  const auto least = reached();
  std::map<announced_state, std::size_t> counts;
  for (const auto& [who, what] : votes_)
    if (what.epoch >= *least) ++counts[what];
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return a.second != b.second ? a.second < b.second : a.first > b.first;
      });
  if (most == counts.end()) return std::nullopt;
  return most->first;
}

} // namespace shoal::actors
