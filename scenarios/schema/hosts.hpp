// Expands a scenario's groups to hosts, and matches names against globs.
#pragma once

#include "scenarios/schema/scenario.hpp"

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

struct host_spec {
  std::string name; ///< '<group>-<index>', or a name from `names`
  std::string group, region;
  data_rate up, down;
  duration buffer{}; ///< the downlink's queue; 0: as the network
  path_options access{};
  coordinate_options coordinates{};
  std::size_t line = 0; ///< number of the line; hosts on a shared line have the same number
  const role_definition* role = nullptr;
  std::string device;
  duration start{}, boot_time{};
  bool absent = false;
  netem::nat_class nat = netem::nat_class::open;
  actors::conduct_options conduct{};
  bool operator==(const host_spec&) const = default;
};

std::string host_name(const peer_group& group, std::uint64_t index);
/// True if the text can name a group or a host. Valid characters are a-z, 0-9, '_' and '-'.
bool is_plain_name(std::string_view name);

/// Returns the hosts of all peers, with groups in the file's order.
std::vector<host_spec> expand_hosts(const scenario& from);

/// Returns the names of the shard hosts: 'shard-0', 'shard-1', ..., or data.names.
std::vector<std::string> shard_hosts(const scenario& from);
/// The conduct of the shard host with this number in shard_hosts().
const actors::conduct_options& conduct_of_shard(const scenario& from, std::size_t number);
/// The names of the shard hosts, and of those in `hosts`, whose conduct is an attack.
std::set<std::string> attacking_hosts(const scenario& from, std::span<const host_spec> hosts);
/// True if a fault's `select` matches this shard host. '*' alone matches no shard.
bool selects_shard(std::string_view select, std::string_view name);

/// Matches `name` against a glob. '*' matches any text and '?' matches one character. '[a-c]'
/// matches a listed character and '[!a]' any other one. Complexity: O(|pattern| |name|).
bool glob_match(std::string_view pattern, std::string_view name);
/// Returns false if no name matches both globs, because their beginnings differ. True means maybe.
bool may_overlap(std::string_view pattern, std::string_view other);

/// Returns the regular files that data.files matches, sorted, with symlinks resolved and no
/// duplicates.
std::vector<std::string> data_files(const scenario& from);
std::vector<std::string> files_matching(const std::string& pattern);

} // namespace shoal::scenarios
