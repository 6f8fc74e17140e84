// Lists the values that differ between two summary.json, by path ('loss.final', 'rounds.ok'). The
// files are read as plain JSON, so that values of other versions of Shoal are compared as well.
#pragma once

#include "kernels/base/result.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

/// A value of summary.json; for null neither member is set.
struct summary_value {
  std::optional<double> number;
  std::optional<std::string> text;
  bool operator==(const summary_value&) const = default;
};
using summary_values = std::map<std::string, summary_value>;

/// Errors: the text is no JSON, or no mapping.
result<summary_values> summary_values_of(std::string_view json);

struct value_difference {
  std::string name;
  std::optional<summary_value> a, b; ///< empty: this side does not have the value
  /// (b - a) / |a|. Empty unless both are numbers and a is not 0.
  std::optional<double> relative() const;
};

/// The differing values in the order of their names. Values that do not depend on the run's course
/// are left out. These are its identity (scenario, seed, world) and measures of the machine
/// (wall_seconds, peak_rss_bytes, distortion).
std::vector<value_difference> diff_values(const summary_values& a, const summary_values& b);

/// A value as text: '2.1841', 'null', or the string.
std::string to_text(const std::optional<summary_value>& value);

} // namespace shoal::scenarios
