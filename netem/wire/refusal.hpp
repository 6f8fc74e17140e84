// The reasons for which one host refuses a link with another. Both sides see the reason, and logs
// and metrics name it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shoal::netem::wire {

enum class refusal : std::uint8_t {
  none,
  not_ours,
  other_version,
  clock_off,
  other_scenario,
  not_admitted,
  expired,
  revoked,
  borrowed_name,
  name_taken,
  ourselves,
  banned,
  no_hello
};

inline constexpr std::array<std::string_view, 13> refusal_names{
    "none",         "not_ours", "other_version", "clock_off",     "other_scenario",
    "not_admitted", "expired",  "revoked",       "borrowed_name", "name_taken",
    "ourselves",    "banned",   "no_hello"};

constexpr std::string_view name_of(refusal why) {
  return refusal_names[static_cast<std::size_t>(why)];
}

/// Whether the same host would be refused again however often it tries.
constexpr bool is_permanent(refusal why) {
  switch (why) {
  case refusal::other_version:
  case refusal::clock_off:
  case refusal::other_scenario:
  case refusal::not_admitted:
  case refusal::expired:
  case refusal::revoked:
  case refusal::borrowed_name:
    return true;
  default:
    return false;
  }
}

} // namespace shoal::netem::wire
