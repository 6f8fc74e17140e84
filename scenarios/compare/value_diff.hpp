// Which values two summary.json have different, by path ('loss.final', 'rounds.ok'). Read as plain
// JSON, so that a value that only one version of Shoal writes is compared as well.
#pragma once

#include "kernels/base/result.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

/// A value of summary.json; null is neither.
struct summary_value {
  std::optional<double> number;
  std::optional<std::string> text;
  bool operator==(const summary_value&) const = default;
};
using summary_values = std::map<std::string, summary_value>;

/// Errors: no JSON, or no mapping.
result<summary_values> summary_values_of(std::string_view json);

struct value_difference {
  std::string name;
  std::optional<summary_value> a, b; ///< nothing: this side does not have it
  /// (b - a) / |a|; nothing unless both are numbers and a is not 0.
  std::optional<double> relative() const;
};

/// In the order of their names. Left out is what says nothing about the run: who it was (scenario,
/// seed, world: options say it) and what the machine did (wall_seconds, peak_rss_bytes,
/// distortion).
std::vector<value_difference> diff_values(const summary_values& a, const summary_values& b);

/// '2.1841', 'null', or the text.
std::string to_text(const std::optional<summary_value>& value);

} // namespace shoal::scenarios
