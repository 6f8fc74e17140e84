#include "scenarios/runner/expectations.hpp"

#include "scenarios/observe/summary.hpp"

#include <fmt/format.h>

namespace shoal::scenarios {

std::vector<std::string> missed_expectations(const std::map<std::string, expectation>& expected,
                                             const summary& what) {
  std::vector<std::string> out;
  for (const auto& [metric, bound] : expected) {
    const auto value = summary_number(what, metric);
    if (!value)
      out.push_back(fmt::format("expect: {} has no value in this run", metric));
    else if (bound.min && *value < *bound.min)
      out.push_back(
          fmt::format("expect: {} is {}, wanted at least {}", metric, *value, *bound.min));
    else if (bound.max && *value > *bound.max)
      out.push_back(fmt::format("expect: {} is {}, wanted at most {}", metric, *value, *bound.max));
  }
  return out;
}

} // namespace shoal::scenarios
