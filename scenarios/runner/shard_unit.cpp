#include "scenarios/runner/shard_unit.hpp"

#include "actors/data/sample_ledger.hpp"

#include <algorithm>
#include <tuple>

namespace shoal::scenarios {

std::size_t primaries_of(const std::vector<shard_unit>& shards, const machine_lives& lives) {
  return static_cast<std::size_t>(
      std::count_if(shards.begin(), shards.end(), [&](const shard_unit& shard) {
        return lives(shard.machine) && *shard.role == actors::replica_role::primary;
      }));
}

const actors::sample_ledger& leading_ledger(const std::vector<shard_unit>& shards,
                                            const machine_lives& lives) {
  const auto rank = [&](const shard_unit& shard) {
    const auto role = shard.role->load();
    return std::tuple{!lives(shard.machine), role != actors::replica_role::primary,
                      role == actors::replica_role::seeking, shard.ledger->index_block()};
  };
  return *std::min_element(shards.begin(), shards.end(), [&](const auto& a, const auto& b) {
            return rank(a) < rank(b);
          })->ledger;
}

} // namespace shoal::scenarios
