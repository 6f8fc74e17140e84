// The hosts that a scenario's groups stand for, and names matched against globs.
#pragma once

#include "scenarios/schema/scenario.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

struct host_spec {
  std::string name; ///< '<group>-<index>', or as the group names it
  std::string group, region;
  data_rate up, down;
  path_options access{};
  coordinate_options coordinates{};
  std::size_t line = 0; ///< hosts of one line have the same number
  const role_definition* role = nullptr;
  std::string device;
  duration start{};
  bool absent = false;
  netem::nat_class nat = netem::nat_class::open;
  std::string conduct = "honest";
  bool operator==(const host_spec&) const = default;
};

std::string host_name(const peer_group& group, std::uint64_t index);
/// Whether it can name a group or a host: a-z, 0-9, '_' and '-'.
bool is_plain_name(std::string_view name);

/// Every peer's host, groups in the file's order.
std::vector<host_spec> expand_hosts(const scenario& from);

/// 'shard-0', 'shard-1', ..., or as data.names has them.
std::vector<std::string> shard_hosts(const scenario& from);
/// Whether a fault's `select` names this one of them: '*' alone does not.
bool selects_shard(std::string_view select, std::string_view name);

/// '*' any text, '?' one character, '[a-c]' one of, '[!a]' none of; everything else itself.
/// Complexity: O(|pattern| |name|).
bool glob_match(std::string_view pattern, std::string_view name);
/// False: no name matches both, as their beginnings differ. (True: perhaps one does.)
bool may_overlap(std::string_view pattern, std::string_view other);

/// The regular files that data.files names: symlinks resolved, each once, sorted.
std::vector<std::string> data_files(const scenario& from);
std::vector<std::string> files_matching(const std::string& pattern);

} // namespace shoal::scenarios
