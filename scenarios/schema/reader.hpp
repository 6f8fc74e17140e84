// The visitor that fills a described struct from a document's nodes. It goes on after a problem, so
// that all of them are reported at once, and it remembers where every value came from for later
// checks.
#pragma once

#include "scenarios/schema/describe.hpp"
#include "scenarios/schema/document.hpp"
#include "scenarios/schema/inventory.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// Below a fault's path: fails where its first key does.
inline constexpr const char* action_path = "(action)";

/// Where the values of a scenario were given, by path ('peers.home.count', 'faults.0.select').
struct source_map {
  std::map<std::string, position> values, keys;
  std::set<std::string> failed; ///< paths whose value could not be read

  /// Of the value, or else of the nearest key around it.
  position value_at(const std::string& path) const;
  /// Of the key, or else of the nearest key around it.
  position key_at(const std::string& path) const;
  bool given(const std::string& path) const { return values.contains(path); }
  /// Neither `path` nor anything around it failed.
  bool sound(const std::string& path) const;
};

/// Fills `out` from `root` and appends what is wrong to `problems`.
void read_scenario(const node& root, scenario& out, source_map& sources,
                   std::vector<problem>& problems);
void read_inventory(const node& root, inventory& out, source_map& sources,
                    std::vector<problem>& problems);

} // namespace shoal::scenarios
