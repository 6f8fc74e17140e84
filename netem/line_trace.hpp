// How a line changes over time, as CSV:
//   time,up,down,delay,loss      the first column and any of the others, in any order
//   0,20Mbit,100Mbit,15ms,0%     times are seconds, fractions allowed, or have a unit; the others
//   are as in scenarios 30,5Mbit,,,1.5%              an empty field: as before
// Rows stand in the order of their times. Blank lines, CRLF and what follows '#' are passed over.
// What is wrong is reported all at once (the first `most_trace_problems`), each with its line and
// column.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/trace.hpp"

#include <iosfwd>
#include <optional>
#include <vector>

namespace shoal::netem {

/// From `at` on; what is not given stays.
struct line_change {
  duration at{};
  std::optional<data_rate> up, down;
  std::optional<duration> delay; ///< one way
  std::optional<double> loss;    ///< of packets, [0, 1)
  bool operator==(const line_change&) const = default;
};

struct line_trace_result {
  std::vector<line_change> changes; ///< complete if there are no problems
  std::vector<trace_problem> problems;
};

line_trace_result read_line_trace(std::istream& in);

} // namespace shoal::netem
