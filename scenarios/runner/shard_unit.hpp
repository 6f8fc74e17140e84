// The hosts of the data shard that a process runs, and which of their ledgers counts.
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

/// A replica of the data shard, its latest incarnation.
struct shard_unit {
  /// Actors on its idle host: the shard and its DHT node.
  static constexpr std::uint64_t idle_actors = 2;

  std::uint32_t machine = 0; ///< netem::machine_index
  std::shared_ptr<actors::sample_ledger> ledger;
  std::shared_ptr<std::atomic<actors::replica_role>> role;
};

using machine_lives = std::function<bool(std::uint32_t machine)>;

/// Living replicas that believe to be the primary.
std::size_t primaries_of(const std::vector<shard_unit>& shards, const machine_lives& lives);

/// The ledger that counts: of the living primary with the lowest index range, else of a follower,
/// else of a replica that still seeks the others. Requires: there are shards, and each was started.
const actors::sample_ledger& leading_ledger(const std::vector<shard_unit>& shards,
                                            const machine_lives& lives);

} // namespace shoal::scenarios
