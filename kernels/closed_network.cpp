#include "kernels/closed_network.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <vector>

namespace shoal::kernels {

double closed_network_rate(std::uint64_t jobs, double delay,
                           std::span<const queue_class> stations) {
  constexpr std::uint64_t most = 4096;
  double largest = 0;
  for (const auto& each : stations) largest = std::max(largest, each.demand);
  SHOAL_CHECK(jobs > 0 && delay >= 0 && delay + largest > 0, "jobs that take some time");
  std::vector<double> queues(stations.size(), 0), waits(stations.size(), 0);
  double rate = 0;
  for (std::uint64_t n = 1; n <= std::min(jobs, most); ++n) {
    double round = delay;
    for (std::size_t k = 0; k < stations.size(); ++k) {
      waits[k] = stations[k].demand * (1 + queues[k] / 2);
      round += stations[k].count * waits[k];
    }
    rate = static_cast<double>(n) / round;
    if (largest > 0) rate = std::min(rate, 1 / largest);
    for (std::size_t k = 0; k < stations.size(); ++k) queues[k] = rate * waits[k];
  }
  return rate;
}

} // namespace shoal::kernels
