// Named random streams: stream(seed, "churn", peer) gives the same numbers on every machine and
// compiler, and drawing from one stream never moves another. Distributions are our own because
// those of the standard library differ between implementations.
// Source: xoshiro256** 1.0, Blackman and Vigna, "Scrambled linear pseudorandom number generators",
// ACM TOMS 47 (2021); seeded by SplitMix64 over FNV-1a of the name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace shoal {

class rng {
 public:
  explicit rng(std::uint64_t seed);

  std::uint64_t next();
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in [0, n) without bias. Requires: n > 0.
  std::uint64_t below(std::uint64_t n);
  /// Standard normal (Box-Muller, one value a call).
  double normal();
  double normal(double mean, double deviation) { return mean + deviation * normal(); }
  double exponential(double mean);
  /// Mean is scale * gamma(1 + 1 / shape).
  double weibull(double shape, double scale);
  double lognormal(double mu, double sigma);

  /// Fisher-Yates.
  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::array<std::uint64_t, 4> state_;
};

/// The stream named (name, a, b) of a run. Equal arguments give equal streams.
rng stream(std::uint64_t seed, std::string_view name, std::uint64_t a = 0, std::uint64_t b = 0);

}  // namespace shoal
