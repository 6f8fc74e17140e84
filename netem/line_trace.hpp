// The changes of a line over time, as CSV:
//   time,up,down,delay,loss      the first column, and any of the others in any order
//   0,20Mbit,100Mbit,15ms,0%     times are seconds, or have a unit; other values as in scenarios
//   30,5Mbit,,,1.5%              an empty field leaves the value as before
// Rows are in the order of their times. Fractions of seconds are allowed. Blank lines, CRLF and
// text after '#' are ignored. The reader reports all faults (the first `most_trace_problems`), each
// with its line and column.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/trace.hpp"

#include <iosfwd>
#include <optional>
#include <vector>

namespace shoal::netem {

/// The values of a line from `at` on. A value that is not given does not change.
struct line_change {
  duration at{};
  std::optional<data_rate> up, down;
  std::optional<duration> delay; ///< one way
  std::optional<double> loss;    ///< the share of lost packets, [0, 1)
  bool operator==(const line_change&) const = default;
};

struct line_trace_result {
  std::vector<line_change> changes; ///< complete if there are no problems
  std::vector<trace_problem> problems;
};

line_trace_result read_line_trace(std::istream& in);

} // namespace shoal::netem
