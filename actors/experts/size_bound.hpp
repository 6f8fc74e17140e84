// How large the values of other hosts may be: a plain state machine that knows the largest recent
// size of each host's values. Values that are far larger than those of most other hosts are
// refused.
//
//   size = root mean square of the values, over that of what they were computed from
//   recent = max(size, memory * recent)
//   a size is refused if it is above most_growth * median of the other hosts' recent sizes
//
// The median of two is the larger one, so one host alone makes no other's bound small.
// Left out: values of a usual size that are wrong all the same, as with another sign. Until
// `least_hosts` other hosts are known, all sizes are accepted.
#pragma once

#include "actors/ids.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace shoal::actors {

/// Root mean square of some values; 0 for none.
inline double size_of_values(std::span<const float> values) {
  double sum = 0;
  for (const float x : values) sum += static_cast<double>(x) * x;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

/// The middle one of some sizes; of two, the larger. Requires: sizes is not empty.
inline double middle_of(std::vector<double> sizes) {
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle;
}

class size_bound {
public:
  static constexpr std::size_t least_hosts = 2, most_hosts = 1024;
  static constexpr double memory = 0.99;

  /// With 0 all sizes are accepted.
  explicit size_bound(double most_growth) : most_growth_(most_growth) {}

  /// True if the size may be. The host's recent size is kept if it may.
  bool accepts(peer_id host, double size) {
    if (most_growth_ == 0) return true;
    std::vector<double> others;
    for (const auto& [peer, recent] : recent_)
      if (peer != host) others.push_back(recent);
    if (others.size() >= least_hosts && size > most_growth_ * middle_of(std::move(others)))
      return false;
    if (recent_.size() < most_hosts || recent_.contains(host)) {
      auto& recent = recent_[host];
      recent = std::max(size, memory * recent);
    }
    return true;
  }

private:
  double most_growth_;
  std::map<peer_id, double> recent_;
};

} // namespace shoal::actors
