#include "actors/trust/standing.hpp"

#include <algorithm>

namespace shoal::actors {

bool standing::miss(const member_id& who, std::uint64_t epoch) {
  if (members_.size() >= how_.most_members && !members_.contains(who))
    std::erase_if(members_, [&](const auto& each) {
      const auto& of = each.second;
      return of.back <= epoch && (of.missed.empty() || of.missed.back() + how_.window <= epoch);
    });
  if (members_.size() >= how_.most_members && !members_.contains(who)) return false;
  auto& of = members_[who];
  const auto place = std::lower_bound(of.missed.begin(), of.missed.end(), epoch);
  if (place != of.missed.end() && *place == epoch) return false;
  of.missed.insert(place, epoch);
  while (of.missed.front() + how_.window <= of.missed.back()) of.missed.pop_front();
  if (of.missed.size() < how_.missed) return false;
  of.back = std::max(of.back, of.missed.back() + 1 + how_.pause);
  of.missed.clear();
  return true;
}

std::set<member_id> standing::out(std::uint64_t epoch) const {
  std::set<member_id> out;
  for (const auto& [who, of] : members_)
    if (epoch < of.back) out.insert(who);
  return out;
}

} // namespace shoal::actors
