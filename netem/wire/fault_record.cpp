#include "netem/wire/fault_record.hpp"

#include <algorithm>

namespace shoal::netem::wire {

void fault_record::ban(const std::string& who, duration now, duration first) {
  auto& state = banned_[who];
  const auto length = std::max(state.next, std::min(first, longest_ban));
  state.until = std::max(state.until, now + length);
  state.next = std::min(2 * length, longest_ban);
}

bool fault_record::is_banned(const std::string& who, duration now) const {
  const auto found = banned_.find(who);
  return found != banned_.end() && found->second.until > now;
}

void fault_record::expire(duration now) {
  std::erase_if(banned_,
                [&](const auto& entry) { return entry.second.until + longest_ban <= now; });
  std::erase_if(named_, [&](auto& entry) { return entry.second.is_full(now); });
}

bool fault_record::names_too_many(const std::string& who, std::size_t unheard, std::size_t most,
                                  duration now) {
  const auto at = named_.try_emplace(who, static_cast<double>(most), std::chrono::hours(1)).first;
  return !at->second.take(static_cast<double>(unheard), now);
}

} // namespace shoal::netem::wire
