// Whether this node is a replica of a key, by its routing table. Every answer states it, so the
// result is cached for each key until the table changes.
#pragma once

#include "actors/dht/routing_table.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace shoal::actors {

class replica_rank {
public:
  replica_rank(const node_id& self, std::size_t replicas) : self_(self), replicas_(replicas) {}

  /// True if `table` has enough nodes that are nearer to the key than this one.
  bool others_nearer(const std::string& key, const routing_table& table) {
    if (ranks_.size() >= most_keys && !ranks_.contains(key)) ranks_.clear();
    const auto [at, fresh] = ranks_.try_emplace(key);
    auto& known = at->second;
    if (!fresh && known.changes == table.changes()) return known.others_nearer;
    const auto target = node_id::of_key(key);
    const auto near = table.nearest(target, replicas_);
    const bool others =
        near.size() == replicas_ && distance(target, near.back().id) < distance(target, self_);
    known = {table.changes(), others};
    return others;
  }

  static constexpr std::size_t most_keys = 4096;

private:
  struct rank {
    std::uint64_t changes = 0; // changes() of the table at that time
    bool others_nearer = false;
  };

  node_id self_;
  std::size_t replicas_;
  std::map<std::string, rank> ranks_;
};

} // namespace shoal::actors
