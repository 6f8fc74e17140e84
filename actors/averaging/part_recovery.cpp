#include "actors/averaging/part_recovery.hpp"

#include <algorithm>

namespace shoal::actors {

bool part_recovery::give(std::uint32_t member, bool reduced, std::uint32_t chunk,
                         std::uint32_t count) {
  auto& given = given_[{member, reduced}];
  given.resize(count);
  if (given[chunk]) return false;
  given[chunk] = true;
  return true;
}

bool part_recovery::plan::any_left() const {
  return std::find(left.begin(), left.end(), true) != left.end();
}

part_recovery::plan part_recovery::gather(const std::function<bool(std::uint32_t)>& held) {
  plan out;
  const auto count = static_cast<std::uint32_t>(reducing_.size());
  out.left.resize(count);
  const auto has = [this](std::uint32_t member, std::uint32_t chunk) {
    if (complete_.contains(member)) return true;
    const auto report = reports_.find(member);
    return report != reports_.end() && report->second[chunk];
  };
  std::set<std::uint32_t> speakers = complete_;
  for (const auto& [member, chunks] : reports_) speakers.insert(member);
  for (std::uint32_t k = 0; k < count; ++k) {
    if (held(k) || reducing_[k] || fetched_.contains(k)) continue;
    const auto from = std::find_if(speakers.begin(), speakers.end(),
                                   [&](std::uint32_t member) { return has(member, k); });
    if (from == speakers.end()) {
      out.left[k] = true;
      continue;
    }
    fetched_.emplace(k, *from);
    out.fetch.try_emplace(*from, chunk_set(count)).first->second[k] = true;
  }
  return out;
}

void part_recovery::reduce_also(const chunk_set& these) {
  for (std::uint32_t k = 0; k < these.size(); ++k)
    if (these[k]) reducing_[k] = true;
}

bool part_recovery::fetches(std::uint32_t chunk, std::uint32_t member) const {
  const auto found = fetched_.find(chunk);
  return found != fetched_.end() && found->second == member;
}

void part_recovery::lose(std::uint32_t member) {
  claimants_.erase(member);
  reports_.erase(member);
  complete_.erase(member);
  std::erase_if(fetched_, [&](const auto& entry) { return entry.second == member; });
}

} // namespace shoal::actors
