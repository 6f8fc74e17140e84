// Whole numbers from foreign JSON. nlohmann::json converts any number to the requested type, and a
// conversion of 1e73 is undefined.
#pragma once

#include "kernels/base/json_text.hpp"

#include <nlohmann/json.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

namespace shoal {

/// Throws json::exception if `from` is not a whole number that T can hold.
template <std::integral T, class Json>
T whole_number(const Json& from) {
  const auto held = [](auto value) { return std::in_range<T>(value); };
  if (from.is_number_unsigned()) {
    if (const auto value = from.template get<std::uint64_t>(); held(value))
      return static_cast<T>(value);
  } else if (from.is_number_integer()) {
    if (const auto value = from.template get<std::int64_t>(); held(value))
      return static_cast<T>(value);
  }
  // Nested arrays would be printed by recursion, as deep as a foreign file likes.
  if (from.is_structured())
    throw nlohmann::json::other_error::create(
        501, std::string("no whole number: an ") + from.type_name(), &from);
  throw nlohmann::json::other_error::create(
      501, "no whole number, or too large a one: " + json_text(from), &from);
}

} // namespace shoal
