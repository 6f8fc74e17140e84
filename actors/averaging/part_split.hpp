// How the averaged vector is split among its reducers.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace shoal::actors {

enum class part_split : std::uint8_t {
  adaptive,         ///< the split with the shortest round: kernels/averaging_plan.hpp
  equal,            ///< all members that can be reached reduce equal parts: a plain all-reduce
  parameter_server, ///< the member with the best line reduces everything
};

constexpr auto names_of(part_split) {
  return std::array{std::pair{part_split::adaptive, "adaptive"},
                    std::pair{part_split::equal, "equal"},
                    std::pair{part_split::parameter_server, "parameter_server"}};
}

/// Former names, which scenario files may still use.
constexpr auto former_names_of(part_split) {
  return std::array{std::pair{part_split::parameter_server, "single"}};
}

} // namespace shoal::actors
