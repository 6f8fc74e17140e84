#include "actors/dht/read_cache.hpp"

#include <algorithm>

namespace shoal::actors {

bool read_cache::read(const std::string& key, duration now, duration fresh) {
  if (views_.size() >= most_keys && !views_.contains(key)) {
    const auto oldest =
        std::min_element(views_.begin(), views_.end(), [](const auto& a, const auto& b) {
          return a.second.used < b.second.used;
        });
    records_.drop_key(oldest->first);
    views_.erase(oldest);
  }
  auto& known = views_[key];
  known.used = now;
  return known.fetched != duration::min() && now - known.fetched < fresh;
}

std::uint64_t read_cache::position(const std::string& key, const node_id& replica) const {
  const auto known = views_.find(key);
  if (known == views_.end()) return 0;
  const auto found = known->second.positions.find(replica);
  return found == known->second.positions.end() ? 0 : found->second;
}

bool read_cache::advance(const std::string& key, const node_id& replica, std::uint64_t sequence) {
  auto& position = views_[key].positions[replica];
  const bool further = sequence > position;
  position = std::max(position, sequence);
  return further;
}

void read_cache::keep_positions(const std::string& key, const std::vector<contact>& replicas) {
  std::erase_if(views_[key].positions, [&](const auto& e) {
    return std::none_of(replicas.begin(), replicas.end(),
                        [&](const contact& c) { return c.id == e.first; });
  });
}

} // namespace shoal::actors
