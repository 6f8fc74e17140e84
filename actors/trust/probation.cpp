#include "actors/trust/probation.hpp"

#include <algorithm>
#include <iterator>

namespace shoal::actors {

newcomers::newcomers(const std::deque<step_ptr>& steps, std::uint64_t rounds) : rounds_(rounds) {
  if (rounds > 0)
    steps_.assign(
        std::prev(steps.end(), static_cast<std::ptrdiff_t>(std::min(window, steps.size()))),
        steps.end());
}

bool newcomers::has(const member_id& who) const {
  const auto needed = std::min<std::uint64_t>(rounds_, (steps_.size() + 1) / 2);
  std::uint64_t rounds = 0;
  for (auto step = steps_.rbegin(); step != steps_.rend() && rounds < needed; ++step) {
    const auto& members = (*step)->supporters;
    rounds += std::binary_search(members.begin(), members.end(), who) ? 1 : 0;
  }
  return rounds < needed;
}

} // namespace shoal::actors
