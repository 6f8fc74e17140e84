// The options of `security`: the protection of rounds against members that send false values.
#pragma once

#include "kernels/base/units.hpp"

#include <cstdint>

namespace shoal::scenarios {

enum class security_kind { none, clip, btard };

struct security_options {
  security_kind kind = security_kind::none;
  std::uint64_t validators = 1; ///< contributions of a round that are computed again
  double radius = 1;            ///< the distance in the whole vector at which values are clipped
  std::uint64_t batch = 0;      ///< samples of a contribution of that radius; 0: see batch_of()
  double most_distance = 0;     ///< 0: no check of distances
  duration commit_time = std::chrono::seconds(5);
  duration duty_time = std::chrono::seconds(30);
  std::uint64_t jurors = 0;    ///< 0: all but the accuser and the accused
  std::uint64_t probation = 0; ///< rounds
  bool operator==(const security_options&) const = default;
};

} // namespace shoal::scenarios
