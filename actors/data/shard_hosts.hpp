// The hosts that are data shards. The scenario names them. A name counts only if the network has
// checked it, or if a certificate shows it; every member can write any name into a message.
#pragma once

#include <caf/actor_control_block.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

namespace shoal::actors {

/// Returns the number of the data shard on whose host `address` is, in the scenario's list. Empty
/// if that host is no data shard, or if neither a link to the host nor `certificate` shows its
/// name.
using shard_finder = std::function<std::optional<std::size_t>(const caf::strong_actor_ptr& address,
                                                              std::string_view certificate)>;

} // namespace shoal::actors
