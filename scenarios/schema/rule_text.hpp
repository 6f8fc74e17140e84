// A rule's bounds in words, the same in error messages and in the reference page.
#pragma once

#include "scenarios/schema/describe.hpp"

#include <fmt/format.h>

#include <string>

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

} // namespace shoal::scenarios
