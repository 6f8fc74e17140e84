// Formats values for scenario files. Each value gets the shortest text that parses to the same
// value.
#pragma once

#include "scenarios/schema/describe.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// Types of items that a list may hold on one line.
template <class T>
concept is_value = std::is_enum_v<T> || std::is_same_v<T, double> || std::is_same_v<T, std::string>;

/// Returns `text` as a plain YAML scalar if that is unambiguous, else in double quotes with
/// escapes.
std::string quoted(const std::string& text);

inline std::string written(const std::string& value) {
  return quoted(value);
}
inline std::string written(bool value) {
  return value ? "true" : "false";
}
inline std::string written(std::uint64_t value) {
  return std::to_string(value);
}
inline std::string written(double value) {
  return fmt::format("{}", value);
}
inline std::string written(duration value) {
  return to_string(value);
}
inline std::string written(time_offset value) {
  if (value.ahead == duration::zero()) return "0";
  return (value.ahead < duration::zero() ? "-" : "+") +
         to_string(value.ahead < duration::zero() ? -value.ahead : value.ahead);
}
inline std::string written(data_rate value) {
  return to_string(value);
}
inline std::string written(data_size value) {
  return to_string(value);
}
template <class E>
requires std::is_enum_v<E> std::string written(E value) {
  return name_of(value);
}
inline std::string written(const word& value) {
  return value.text();
}
inline std::string written(const kernels::grid& value) {
  return kernels::to_string(value);
}
template <class T>
requires is_value<T> std::string written(const std::vector<T>& values) {
  std::string out = "[";
  for (const T& value : values) out += (out.size() > 1 ? ", " : "") + written(value);
  return out + "]";
}

} // namespace shoal::scenarios
