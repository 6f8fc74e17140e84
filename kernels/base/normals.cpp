#include "kernels/base/portable_series.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/base/wider.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

// rng::normal for many values at once. The loops do what portable::log and portable::cos_turns do
// to one value, without their branches, so that the compiler may take several values at a time. The
// operations and their order are the same, so the bits are the same.
namespace shoal {

namespace {

constexpr std::size_t block = 128;

using portable::horner;

/// `radius` in (0, 1], not below 2^-53; `turn` in [0, 1).
SHOAL_WIDER void box_muller(const double* radius, const double* turn, double* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<std::uint64_t>(radius[i]);
    // The exponent as a number: the low bits of 2^52 + e are the bits of e.
    const double biased = std::bit_cast<double>((bits >> 52) | 0x4330000000000000U) - 0x1p52;
    const double half =
        std::bit_cast<double>((bits & 0x000fffffffffffffU) | 0x3fe0000000000000U); // in [0.5, 1)
    const bool low = half < 0.5 * std::numbers::sqrt2;
    const double k = biased - (low ? 1023.0 : 1022.0);
    const double f = (low ? half * 2 : half) - 1;
    const double s = f / (2 + f);
    const double z = s * s;
    const double r = z * horner(portable::log_series, z);
    const double log = k * portable::ln2_high - ((s * (f - r) - k * portable::ln2_low) - f);

    const double quarter = (turn[i] >= 0.125 ? 1.0 : 0.0) + (turn[i] >= 0.375 ? 1.0 : 0.0) +
                           (turn[i] >= 0.625 ? 1.0 : 0.0) + (turn[i] >= 0.875 ? 1.0 : 0.0);
    const double t = 2 * std::numbers::pi * (turn[i] - quarter / 4);
    const double square = t * t;
    const double cosine = 1 + square * horner(portable::cosine_series, square);
    const double sine = t + t * (square * horner(portable::sine_series, square));
    const double size = quarter == 1 || quarter == 3 ? sine : cosine;
    out[i] = std::sqrt(-2 * log) * (quarter == 1 || quarter == 2 ? -size : size);
  }
}

} // namespace

void rng::normals(std::span<double> out) {
  std::array<double, block> radius, turn;
  rng here = *this; // a copy in registers
  for (std::size_t at = 0; at < out.size(); at += block) {
    const auto n = std::min(block, out.size() - at);
    for (std::size_t i = 0; i < n; ++i) {
      radius[i] = 1 - here.uniform();
      turn[i] = here.uniform();
    }
    box_muller(radius.data(), turn.data(), out.data() + at, n);
  }
  *this = here;
}

} // namespace shoal
