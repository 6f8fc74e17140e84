#include "kernels/part_boundaries.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shoal::kernels {

namespace {

__extension__ typedef unsigned __int128 uint128;

/// Shares as integers of at most 53 bits: scaled by one power of two, then cut.
std::vector<std::uint64_t> integer_shares(std::span<const double> shares) {
  int exponent = 0;
  std::frexp(*std::max_element(shares.begin(), shares.end()), &exponent);
  std::vector<std::uint64_t> out;
  out.reserve(shares.size());
  for (const double share : shares)
    out.push_back(static_cast<std::uint64_t>(std::ldexp(share, 53 - exponent)));
  return out;
}

} // namespace

bool valid_shares(std::span<const double> shares) {
  bool positive = false;
  for (const double share : shares) {
    if (!std::isfinite(share) || share < 0) return false;
    positive = positive || share > 0;
  }
  return positive;
}

std::vector<std::uint64_t> part_boundaries(std::uint64_t length, std::span<const double> shares,
                                           std::uint64_t align) {
  SHOAL_CHECK(valid_shares(shares), "shares must be finite and >= 0, with a positive sum");
  SHOAL_CHECK(align > 0, "align must be positive");
  const std::size_t n = shares.size();
  const std::uint64_t blocks = length / align + (length % align != 0 ? 1 : 0);
  const std::vector<std::uint64_t> weights = integer_shares(shares);
  uint128 total = 0;
  for (const std::uint64_t weight : weights) total += weight;

  std::vector<std::uint64_t> counts(n);
  std::vector<uint128> remainders(n);
  std::uint64_t left = blocks;
  for (std::size_t i = 0; i < n; ++i) {
    const uint128 quota = static_cast<uint128>(blocks) * weights[i]; // below 2^117
    counts[i] = static_cast<std::uint64_t>(quota / total);
    remainders[i] = quota % total;
    left -= counts[i];
  }
  // The remainders add up to left * total, and each is below total. So more than `left` of them are
  // positive when left > 0, and a part without a share never gets a block.
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  for (std::size_t k = 0; k < left; ++k) ++counts[order[k]];

  std::vector<std::uint64_t> offsets(n + 1, 0);
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < n; ++i) {
    done += counts[i];
    offsets[i + 1] = done == blocks ? length : done * align;
  }
  return offsets;
}

std::vector<double> equal_shares(std::size_t n) {
  return std::vector<double>(n, 1.0);
}

} // namespace shoal::kernels
