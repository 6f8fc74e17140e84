#include "actors/averaging/ballot.hpp"

#include <algorithm>

namespace shoal::actors {

bool ballot::cast(std::uint32_t member, const id128& version) {
  auto& vote = members_[member].vote;
  if (vote && *vote != version) return false;
  vote = version;
  return true;
}

void ballot::lose(std::uint32_t member, bool declined) {
  members_[member].lost = true;
  members_[member].declined = declined;
}

std::uint32_t ballot::majority() const {
  std::uint32_t voters = 0;
  for (const auto& each : members_)
    if (each.votes && !each.declined) ++voters;
  return voters / 2 + 1;
}

std::uint32_t ballot::possible() const {
  std::uint32_t out = 0;
  for (std::uint32_t m = 0; m < members_.size(); ++m) {
    const auto& each = members_[m];
    if (!each.votes) continue;
    const bool may = m == self_ || (each.vote ? !own_ || each.vote == own_ : !each.lost);
    out += may ? 1 : 0;
  }
  return out;
}

ballot::verdict ballot::count(std::uint32_t needed) const {
  const auto votes = std::count_if(members_.begin(), members_.end(),
                                   [&](const voter& each) { return each.vote == own_; });
  if (announced_ == own_ || votes >= needed) return verdict::won;
  return announced_ ? verdict::lost : verdict::open;
}

} // namespace shoal::actors
