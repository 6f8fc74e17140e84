// The reader: a visitor that fills a described struct from the nodes of a document. The reader
// continues after a problem, so that one pass reports all problems. The reader also records the
// position of each value for later checks.
#pragma once

#include "scenarios/schema/describe.hpp"
#include "scenarios/schema/document.hpp"
#include "scenarios/schema/inventory.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// Pseudo-key below a fault's path. The reader marks this path as failed if the fault's action is
/// invalid.
inline constexpr const char* action_path = "(action)";

/// Positions of a scenario's values, by path ('peers.home.count', 'faults.0.select').
struct source_map {
  std::map<std::string, position> values, keys;
  std::set<std::string> failed; ///< paths of invalid values

  /// Position of the value, or else of the nearest key around the value.
  position value_at(const std::string& path) const;
  /// Position of the key, or else of the nearest key around this key.
  position key_at(const std::string& path) const;
  bool given(const std::string& path) const { return values.contains(path); }
  /// True if neither `path` nor a path around `path` has failed.
  bool sound(const std::string& path) const;
};

/// Fills `out` from `root` and appends errors and warnings to `problems`.
void read_scenario(const node& root, scenario& out, source_map& sources,
                   std::vector<problem>& problems);
void read_inventory(const node& root, inventory& out, source_map& sources,
                    std::vector<problem>& problems);

} // namespace shoal::scenarios
