// What an option has to be, and words for enumerators: what descriptions are made of.
#pragma once

#include <optional>
#include <utility>

namespace shoal::scenarios {

/// What a value has to be. Bounds are in the value's base unit: seconds, bits/s, bytes.
struct rule {
  bool required = false;
  std::optional<double> above{}, at_least{}, below{}, at_most{};
  bool fraction = false;          ///< may be written as a percentage
  bool hide_default = false;      ///< not printed while it has its default value
  const char* one_of = nullptr;   ///< allowed texts, separated by ", "
  const char* formerly = nullptr; ///< the key's former name, which is read with a warning
  const char* otherwise =
      nullptr; ///< how the reference words the default, where it depends on other options
};

template <class E>
using enum_name = std::pair<E, const char*>;

} // namespace shoal::scenarios
