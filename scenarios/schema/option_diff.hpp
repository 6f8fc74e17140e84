// Which options two scenario documents give different values: by path, as --set names them. Items
// of a list of mappings (faults, links) have no identity, so such lists are compared as bags, and
// an item is shown whole.
#pragma once

#include "scenarios/schema/document.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shoal::scenarios {

struct option_difference {
  std::string path;                ///< 'averaging.group_size', 'faults'
  std::optional<std::string> a, b; ///< nothing: this side does not have it
  bool operator==(const option_difference&) const = default;
};

/// Every value by its path; lists of mappings are left out. Keys that begin with 'x-' are too.
std::map<std::string, std::string> option_values(const document& of);

/// In the order of their paths, items of lists behind the single values.
std::vector<option_difference> diff_options(const document& a, const document& b);

/// A node on one line: '{kill: process, select: home-*}'.
std::string on_one_line(const node& what);

} // namespace shoal::scenarios
