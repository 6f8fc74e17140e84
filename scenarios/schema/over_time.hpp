// Lines that change over time: `over_time` of a group, of the path between two regions, and of a
// shared link.
#pragma once

#include "netem/line_trace.hpp"

#include <string>
#include <vector>

namespace shoal::scenarios {

struct scenario;
struct source_map;
struct problem;

struct over_time_options {
  std::vector<netem::line_change> steps; ///< changes, sorted by time
  std::string trace;                     ///< CSV file in place of `steps`: netem/line_trace.hpp
  duration repeat{};                     ///< period after which the changes repeat; 0: never
  bool any() const { return !steps.empty() || !trace.empty(); }
  bool operator==(const over_time_options&) const = default;
};

/// The kind of line that changes. It determines which values a change may have.
enum class changed_line { group, way, shared };

/// Returns `steps`, or the changes in the trace file. Errors: an invalid file, as
/// 'file:line:column: error: message'.
result<std::vector<netem::line_change>> changes_of(const over_time_options& what,
                                                   const std::string& folder);

void check_over_time(const scenario& what, const source_map& sources, const std::string& folder,
                     std::vector<problem>& problems);

} // namespace shoal::scenarios
