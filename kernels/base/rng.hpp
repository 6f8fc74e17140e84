// Named random streams: stream(seed, "churn", peer) gives the same numbers on every machine and
// compiler, and drawing from one stream never moves another. The distributions are Shoal's own,
// because those of the standard library differ between implementations.
// Source: xoshiro256** 1.0, Blackman and Vigna, "Scrambled linear pseudorandom number generators",
// ACM TOMS 47 (2021); seeded by SplitMix64 over FNV-1a of the name.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace shoal {

/// A moment of a run from which its streams go on with other numbers. The owner sets `reached` at
/// the moment. Each stream then mixes `seed` into its state before its next draw. So a stream that
/// begins after the moment differs from that of the first seed, too.
struct branch_point {
  std::uint64_t seed = 0;
  bool reached = false;
  const branch_point* next = nullptr; ///< a later moment, or null
};

/// The seed of a run, with the moments from which other seeds count.
struct run_seed {
  std::uint64_t first = 0;
  const branch_point* branches = nullptr; ///< outlives the streams of this seed

  // Most streams have no branches, so a plain number is a seed, too.
  run_seed(std::uint64_t seed, const branch_point* from = nullptr) : first(seed), branches(from) {}
};

class rng {
public:
  explicit rng(std::uint64_t seed);
  /// Starts in this state. Requires: not all words are zero.
  explicit rng(const std::array<std::uint64_t, 4>& state) : state_(state) {}

  std::uint64_t next() {
    if (branches_ != nullptr) [[unlikely]]
      turn();
    const std::uint64_t out = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return out;
  }
  /// Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in [0, n) without bias. Requires: n > 0.
  std::uint64_t below(std::uint64_t n);
  /// Standard normal (Box-Muller, one value a call).
  double normal();
  /// The same numbers as that many calls of normal(), to the bit, in a quarter of the time.
  void normals(std::span<double> out);
  /// Calls `use(i, z)` with a standard normal z for each i below n, in order.
  template <class Use>
  void for_each_normal(std::size_t n, Use use) {
    std::array<double, 128> some;
    for (std::size_t at = 0; at < n; at += some.size()) {
      const auto drawn = std::span(some).first(std::min(some.size(), n - at));
      normals(drawn);
      for (std::size_t i = 0; i < drawn.size(); ++i) use(at + i, drawn[i]);
    }
  }
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
  friend rng stream(run_seed, std::string_view, std::uint64_t, std::uint64_t);
  /// Passes the branches that are reached.
  void turn();

  std::array<std::uint64_t, 4> state_;
  const branch_point* branches_ = nullptr; // the next branch that is ahead; null: none
};

/// 32 bytes from the system's source of randomness.
std::array<std::byte, 32> random_secret();
/// A stream whose numbers tell nothing about other streams of the same secret: its state is a keyed
/// hash of the arguments. For processes that talk to others. The numbers of one stream still follow
/// from each other, so no key may be made of them.
rng secret_stream(std::span<const std::byte> secret, std::string_view name, std::uint64_t a = 0,
                  std::uint64_t b = 0);

/// The stream named (name, a, b) of a run. Equal arguments give equal streams.
rng stream(run_seed seed, std::string_view name, std::uint64_t a = 0, std::uint64_t b = 0);

} // namespace shoal
