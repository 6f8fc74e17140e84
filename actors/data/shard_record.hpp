// The DHT record of a data shard under data_shard_key.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/payload.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace shoal::actors {

/// The number of indices in a block. One incarnation of a replica issues fresh indices from one
/// block. A shard without replicas has block 0 at first, so its indices are 0, 1, ... A cluster
/// numbers blocks by the time, and 64 bits hold all blocks until the year 2110
/// (scenarios/runner/node.hpp).
inline constexpr std::uint64_t index_block_size = std::uint64_t{1} << 30;
/// The last index block whose indices fit into 64 bits.
inline constexpr std::uint64_t last_index_block =
    std::numeric_limits<std::uint64_t>::max() / index_block_size - 1;

enum class replica_role : std::uint8_t { seeking, backup, primary, yielding };

/// The part of a shard's record that a replica adds.
struct replica_record {
  std::uint64_t index_block = 0;
  replica_role role = replica_role::seeking;
};

struct shard_record {
  std::optional<replica_record> replica; ///< empty for a shard without replicas
  /// The certificate of the shard's host. It shows the host's name to peers without a link to it.
  /// Empty in worlds without certificates.
  std::string certificate;

  payload pack() const;
  /// Empty if `bytes` is not the result of pack().
  static std::optional<shard_record> unpack(const payload& bytes);
};

} // namespace shoal::actors
