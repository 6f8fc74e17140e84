#include "actors/averaging/aggregator_options.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>

namespace shoal::actors {

double aggregation_setting::number(const std::string& name) const {
  if (const auto found = chosen.find(name); found != chosen.end()) return found->second;
  SHOAL_CHECK(known != nullptr, "the definition lists its options");
  const auto found = std::find_if(known->begin(), known->end(),
                                  [&](const aggregator_option& one) { return one.name == name; });
  SHOAL_CHECK(found != known->end(), "an option that the definition has");
  return found->standard;
}

} // namespace shoal::actors
