// Which groups play which trace, and as whom.
#pragma once

#include "scenarios/schema/scenario.hpp"

#include <string>
#include <vector>

namespace shoal::scenarios {

/// Groups that play one trace, in the file's order.
struct trace_use {
  std::vector<std::string> files; ///< absolute; one, or what a glob names
  netem::trace_options how;       ///< its format is known
  bool by_name = true;            ///< else the n-th peer is the n-th host of the groups
  std::vector<const peer_group*> groups;
};

/// Of the groups of `from`, which has to outlive it. A file that cannot be read is taken for csv.
/// `folder`: where relative paths begin.
std::vector<trace_use> trace_uses(const scenario& from, const std::string& folder);

/// The files of a `trace:`, which may be a glob.
std::vector<std::string> trace_files(const std::string& path);

} // namespace shoal::scenarios
