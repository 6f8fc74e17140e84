// The keys that this node's host reads: their records, and the sequence number up to which each
// replica was read. A plain state machine.
#pragma once

#include "actors/dht/messages.hpp"
#include "actors/dht/record_store.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace shoal::actors {

class read_cache {
public:
  explicit read_cache(const record_limits& limits) : records_(limits) {}

  record_store& records() noexcept { return records_; }
  const record_store& records() const noexcept { return records_; }

  /// The host reads the key now. With too many keys, the least recently used one is forgotten. True
  /// if the replicas' records were fetched less than `fresh` ago.
  bool read(const std::string& key, duration now, duration fresh);
  /// A replica has answered a query for the key.
  void used(const std::string& key, duration now) { views_[key].used = now; }
  /// The records of the replicas were fetched now.
  void fetched(const std::string& key, duration now) { views_[key].fetched = now; }

  /// The sequence number up to which `replica` was read; 0 if it never was.
  std::uint64_t position(const std::string& key, const node_id& replica) const;
  /// An answer of `replica` reaches up to `sequence`. True if that is further than before.
  bool advance(const std::string& key, const node_id& replica, std::uint64_t sequence);
  /// Forgets the positions of all other nodes.
  void keep_positions(const std::string& key, const std::vector<contact>& replicas);

  bool has(const std::string& key) const { return views_.contains(key); }
  /// Forgets keys that were last used more than `lifetime` ago, except where `in_use(key)`.
  template <class F>
  void drop_idle(duration now, duration lifetime, F in_use) {
    for (auto at = views_.begin(); at != views_.end();) {
      const bool idle = now - at->second.used > lifetime && !in_use(at->first);
      if (idle) records_.drop_key(at->first);
      at = idle ? views_.erase(at) : std::next(at);
    }
  }

  static constexpr std::size_t most_keys = 4096;

private:
  struct view {
    std::map<node_id, std::uint64_t> positions;
    duration fetched{duration::min()};
    duration used{};
  };

  record_store records_;
  std::map<std::string, view> views_;
};

} // namespace shoal::actors
