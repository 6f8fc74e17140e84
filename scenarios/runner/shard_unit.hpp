// The data shard's hosts in this process, and the choice of their authoritative ledger.
#pragma once

#include "actors/data/shard_replica.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace shoal::actors {
class sample_ledger;
}

namespace shoal::scenarios {

/// The latest incarnation of one replica of the data shard.
struct shard_unit {
  /// Number of actors on an idle host: the DHT node, and the shard once it serves.
  std::uint64_t idle_actors() const { return serves && *serves ? 2 : 1; }

  std::uint32_t machine = 0; ///< netem::machine_index
  std::shared_ptr<actors::sample_ledger> ledger;
  std::shared_ptr<std::atomic<actors::replica_role>> role;
  std::shared_ptr<std::atomic<bool>> serves; ///< in a cluster, some seconds after the start
};

using machine_lives = std::function<bool(std::uint32_t machine)>;

/// Returns the number of living replicas that consider themselves the primary.
std::size_t primaries_of(const std::vector<shard_unit>& shards, const machine_lives& lives);

/// Returns the authoritative ledger. The living primary with the lowest index range holds this
/// ledger. Without a living primary, a follower's ledger counts, or else that of a replica which
/// still seeks the other replicas. Requires: `shards` is not empty, and each shard was started.
const actors::sample_ledger& leading_ledger(const std::vector<shard_unit>& shards,
                                            const machine_lives& lives);

} // namespace shoal::scenarios
