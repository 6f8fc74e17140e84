// What goes on while a peer computes the next batch, whose gradients are then one step old.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace shoal::actors {

enum class overlap : std::uint8_t {
  none,
  update,     ///< the optimizer's step (delayed parameter updates)
  averaging,  ///< the round of averaging, too (delayed gradient averaging)
};

constexpr auto names_of(overlap) {
  return std::array{std::pair{overlap::none, "none"}, std::pair{overlap::update, "update"}, std::pair{overlap::averaging, "averaging"}};
}

}  // namespace shoal::actors
