// Rules for the values of options, and names of enumerators. describe() functions use both.
#pragma once

#include <optional>
#include <utility>

namespace shoal::scenarios {

/// Limits on a value. Bounds are in the value's base unit: seconds, bits/s, bytes.
struct rule {
  bool required = false;
  std::optional<double> above{}, at_least{}, below{}, at_most{};
  bool fraction = false;          ///< the value may be a percentage
  bool hide_default = false;      ///< the printer omits the default value
  const char* one_of = nullptr;   ///< allowed texts, separated by ", "
  const char* formerly = nullptr; ///< the key's former name, which is read with a warning
  /// The reference page's text for a default that depends on other options.
  const char* otherwise = nullptr;
};

template <class E>
using enum_name = std::pair<E, const char*>;

} // namespace shoal::scenarios
