// The order of small messages: they arrive in order for each pair of hosts. Thread safety: none.
// Callers pass the time.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/flat_map.hpp"
#include "netem/ids.hpp"

#include <algorithm>
#include <cstdint>

namespace shoal::netem {

inline duration transmission_time(std::uint64_t bytes, data_rate rate) {
  return from_seconds(static_cast<double>(bytes) / rate.bytes_per_second());
}

class small_lines {
public:
  /// The arrival of a message that alone would arrive at `arrival`: not before the previous message
  /// of its pair. The next message waits for this one.
  duration in_order(std::uint64_t pair, duration arrival, duration now) {
    if (last_.size() >= last_.capacity())
      last_.erase_if([now](std::uint64_t, duration last) { return last <= now; });
    auto& last = last_[pair];
    return last = std::max(last, arrival);
  }
  /// The later one of `at` and the latest arrival of the pair so far.
  duration behind_last(std::uint64_t pair, duration at) const {
    const auto* last = last_.find(pair);
    return last != nullptr ? std::max(at, *last) : at;
  }

private:
  flat_map<duration> last_; // by the pair of hosts; iterated only to drop idle ones
};

} // namespace shoal::netem
