// The ways in which others can reach a peer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shoal::actors {

/// A peer's belief about how others can reach it.
enum class reach : std::uint8_t { unknown, open, cone, symmetric, outbound_only };
inline constexpr std::array<std::string_view, 5> reach_names{"unknown", "open", "cone", "symmetric",
                                                             "outbound_only"};
constexpr std::string_view to_string(reach value) {
  return reach_names[static_cast<std::size_t>(value)];
}

} // namespace shoal::actors
