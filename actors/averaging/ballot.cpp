#include "actors/averaging/ballot.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

void ballot::cast(const id128& version, const signature& by) {
  own_ = members_[self_].vote = version;
  members_[self_].by = by;
}

bool ballot::cast(std::uint32_t member, const id128& version, const signature& by) {
  auto& one = members_[member];
  if (one.declined || (one.vote && *one.vote != version)) return false;
  one.vote = version;
  one.by = by;
  return true;
}

bool ballot::decline(std::uint32_t member, const signature& by) {
  auto& one = members_[member];
  if (one.vote) return false;
  one.declined = by;
  return true;
}

void ballot::certify(const id128& version, std::vector<member_signature> votes,
                     std::vector<member_signature> declines) {
  certified_ = version;
  certified_votes_ = std::move(votes);
  certified_declines_ = std::move(declines);
  for (auto* each : {&certified_votes_, &certified_declines_})
    std::sort(each->begin(), each->end(),
              [](const auto& a, const auto& b) { return a.member < b.member; });
}

std::uint32_t ballot::needed() const {
  return votes_needed(static_cast<std::uint32_t>(
      std::count_if(members_.begin(), members_.end(),
                    [](const voter& each) { return each.votes && !each.declined; })));
}

std::uint32_t ballot::possible() const {
  std::uint32_t out = 0;
  for (std::uint32_t m = 0; m < members_.size(); ++m) {
    const auto& each = members_[m];
    if (!each.votes || each.declined) continue;
    const bool may = m == self_ || (each.vote ? !own_ || each.vote == own_ : !each.lost);
    out += may ? 1 : 0;
  }
  return out;
}

std::uint32_t ballot::count_of(const id128& version) const {
  return static_cast<std::uint32_t>(
      std::count_if(members_.begin(), members_.end(),
                    [&](const voter& each) { return each.votes && each.vote == version; }));
}

std::optional<id128> ballot::winner(std::uint32_t needed) const {
  if (own_ && count_of(*own_) >= needed) return own_;
  if (certified_) return certified_;
  for (const auto& each : members_)
    if (each.vote && count_of(*each.vote) >= needed) return each.vote;
  return std::nullopt;
}

ballot::verdict ballot::count(std::uint32_t needed) const {
  const auto won = winner(needed);
  if (!won) return verdict::open;
  return won == own_ ? verdict::won : verdict::lost;
}

std::vector<member_signature> ballot::votes_for(const id128& version) const {
  if (certified_ == version) return certified_votes_;
  std::vector<member_signature> out;
  for (std::uint32_t m = 0; m < members_.size(); ++m)
    if (members_[m].votes && members_[m].vote == version) out.push_back({m, members_[m].by});
  return out;
}

std::vector<member_signature> ballot::declines_for(const id128& version) const {
  if (certified_ == version) return certified_declines_;
  std::vector<member_signature> out;
  for (std::uint32_t m = 0; m < members_.size(); ++m)
    if (members_[m].votes && members_[m].declined) out.push_back({m, *members_[m].declined});
  return out;
}

contradiction ballot::contradicts(std::uint32_t member, const id128& version,
                                  const signature& by) const {
  const auto& one = members_[member];
  contradiction out;
  out.first = version;
  out.first_by = by;
  if (one.declined) {
    out.what = contradiction::kind::vote_and_decline;
    out.second_by = *one.declined;
  } else if (one.vote) {
    out.second = *one.vote;
    out.second_by = one.by;
  }
  return out;
}

contradiction ballot::contradicts(std::uint32_t member, const signature& decline) const {
  const auto& one = members_[member];
  contradiction out;
  out.what = contradiction::kind::vote_and_decline;
  out.first = one.vote.value_or(id128{});
  out.first_by = one.by;
  out.second_by = decline;
  return out;
}

} // namespace shoal::actors
