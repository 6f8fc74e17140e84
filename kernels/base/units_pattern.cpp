#include "kernels/base/units_pattern.hpp"

#include "kernels/base/units_table.hpp"

namespace shoal {

namespace {

template <class Units>
std::string pattern_of(const Units& units, bool above_zero, std::string names = {}) {
  for (const auto& unit : units) names += (names.empty() ? "" : "|") + std::string(unit.name);
  return std::string(above_zero ? "^(?=[0.]*[1-9])" : "^") + "[0-9]+(\\.[0-9]+)? *(" + names + ")$";
}

} // namespace

std::string duration_pattern(bool above_zero) {
  return pattern_of(unit_table::duration_units, above_zero, "m"); // 'm' is short for 'min'
}
std::string rate_pattern(bool above_zero) {
  return pattern_of(unit_table::rate_units, above_zero);
}
std::string size_pattern(bool above_zero) {
  return pattern_of(unit_table::size_units, above_zero);
}

} // namespace shoal
