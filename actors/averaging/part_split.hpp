// How the averaged vector is split among its reducers.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace shoal::actors {

enum class part_split : std::uint8_t {
  adaptive, ///< so that the round is short: kernels/averaging_plan.hpp
  equal,    ///< all members that can be reached reduce equal parts: a plain all-reduce
  single,   ///< the member with the best line reduces everything: a parameter server
};

constexpr auto names_of(part_split) {
  return std::array{std::pair{part_split::adaptive, "adaptive"},
                    std::pair{part_split::equal, "equal"}, std::pair{part_split::single, "single"}};
}

} // namespace shoal::actors
