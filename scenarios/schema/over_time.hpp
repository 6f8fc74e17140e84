// Lines that change over time: `over_time` of a group, of the way between two regions, of a shared
// link.
#pragma once

#include "netem/line_trace.hpp"

#include <string>
#include <vector>

namespace shoal::scenarios {

struct scenario;
struct source_map;
struct problem;

struct over_time_options {
  std::vector<netem::line_change> steps; ///< in the order of their times
  std::string trace;                     ///< or a CSV file: netem/line_trace.hpp
  duration repeat{};                     ///< all over again after this; 0: never
  bool any() const { return !steps.empty() || !trace.empty(); }
  bool operator==(const over_time_options&) const = default;
};

/// Whose line it is: which values it has.
enum class changed_line { group, way, shared };

/// The steps, of the file if there is one. Errors: the file, as 'file:line:column: error: message'.
result<std::vector<netem::line_change>> changes_of(const over_time_options& what,
                                                   const std::string& folder);

void check_over_time(const scenario& what, const source_map& sources, const std::string& folder,
                     std::vector<problem>& problems);

} // namespace shoal::scenarios
