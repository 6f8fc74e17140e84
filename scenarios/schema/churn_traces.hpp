// The traces of a scenario's churn, and the groups that replay each trace.
#pragma once

#include "scenarios/schema/scenario.hpp"

#include <string>
#include <vector>

namespace shoal::scenarios {

/// Groups that replay the same trace, in the file's order.
struct trace_use {
  std::vector<std::string> files; ///< absolute paths: one file, or all files of a glob
  netem::trace_options how;       ///< options with a resolved format
  bool by_name = true;            ///< false: the n-th host replays the n-th peer of the trace
  std::vector<const peer_group*> groups;
};

/// Lists the traces of the groups of `from`, which must outlive the result. An unreadable file
/// counts as csv. Relative paths start at `folder`.
std::vector<trace_use> trace_uses(const scenario& from, const std::string& folder);

/// Returns the files of a `trace:`, which may be a glob.
std::vector<std::string> trace_files(const std::string& path);

} // namespace shoal::scenarios
