// A rule in words, the same in error messages, in the reference page and in the JSON schema.
#pragma once

#include "scenarios/schema/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

/// 'more than 0s and at most 5s'; empty without bounds.
inline std::string range_text(const rule& r, const char* unit) {
  const auto words = [&](const char* relation, double bound) {
    return fmt::format("{} {}{}", relation, bound, unit);
  };
  std::string low, high;
  if (r.above) low = words("more than", *r.above);
  if (r.at_least) low = words("at least", *r.at_least);
  if (r.below) high = words("less than", *r.below);
  if (r.at_most) high = words("at most", *r.at_most);
  return low + (!low.empty() && !high.empty() ? " and " : "") + high;
}

/// The names of a list such as rule::one_of: 'none, float16, int8'.
inline std::vector<std::string> listed_names(std::string_view list) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(", ", at), list.size());
    out.emplace_back(list.substr(at, end - at));
    at = end + 2;
  }
  return out;
}

} // namespace shoal::scenarios
