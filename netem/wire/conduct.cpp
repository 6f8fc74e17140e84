#include "netem/wire/conduct.hpp"

namespace shoal::netem::wire {

bool conduct::is_banned(const std::string& name, duration now) const {
  const auto found = banned_.find(name);
  return found != banned_.end() && found->second > now;
}

void conduct::expire(duration now) {
  std::erase_if(banned_, [&](const auto& entry) { return entry.second <= now; });
}

} // namespace shoal::netem::wire
