#include "kernels/balanced_shares.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <numeric>

namespace shoal::kernels {

std::vector<double> balanced_shares(std::span<const double> rates) {
  SHOAL_CHECK(!rates.empty(), "a group has members");
  auto n = static_cast<double>(rates.size());
  auto total = std::accumulate(rates.begin(), rates.end(), 0.0);
  SHOAL_CHECK(total > 0, "a peer must be able to reduce");
  std::vector<double> shares(rates.begin(), rates.end());
  if (rates.size() <= 2) {
    for (auto& share : shares) share /= total;
    return shares;
  }
  auto at = [&](double x) {
    double sum = 0;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      shares[i] = rates[i] > 0 ? std::clamp((x * rates[i] - 1) / (n - 2), 0.0, 1.0) : 0.0;
      sum += shares[i];
    }
    return sum;
  };
  double low = 0;
  for (auto rate : rates)
    if (rate > 0) low = std::max(low, 1 / rate);
  double high = low;
  while (at(high) < 1) high *= 2;
  for (int i = 0; i < 200 && at(low) < 1; ++i) {
    auto middle = low + (high - low) / 2;
    if (middle == low || middle == high) break;
    (at(middle) < 1 ? low : high) = middle;
  }
  // At the lower bound max 1/b the shares may sum to more than 1. The slowest client binds, so
  // scaling down helps no peer, but the shares must sum to 1.
  auto sum = at(at(low) >= 1 ? low : high);
  for (auto& share : shares) share /= sum;
  return shares;
}

} // namespace shoal::kernels
