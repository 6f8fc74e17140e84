#include "kernels/base/rng.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/portable_math.hpp"

#include <sodium.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace shoal {

namespace {

__extension__ typedef unsigned __int128 uint128;

/// SplitMix64 (Steele, Lea and Flood, 2014): advances `state` and returns the mixed value.
std::uint64_t splitmix64(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

} // namespace

rng::rng(std::uint64_t seed) {
  for (auto& word : state_) word = splitmix64(seed);
}

// Source: Lemire, "Fast random integer generation in an interval", ACM TOMACS 29 (2019).
std::uint64_t rng::below(std::uint64_t n) {
  SHOAL_CHECK(n > 0, "below(0) has no value to return");
  uint128 product = static_cast<uint128>(next()) * n;
  if (static_cast<std::uint64_t>(product) < n) {
    const std::uint64_t threshold = (0 - n) % n;
    while (static_cast<std::uint64_t>(product) < threshold)
      product = static_cast<uint128>(next()) * n;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double rng::normal() {
  const double radius_draw = 1 - uniform(); // in (0, 1]: its logarithm is finite
  const double turn = uniform();
  return std::sqrt(-2 * portable::log(radius_draw)) * portable::cos_turns(turn);
}

double rng::exponential(double mean) {
  return mean * -portable::log(1 - uniform());
}

double rng::weibull(double shape, double scale) {
  return scale * portable::pow(-portable::log(1 - uniform()), 1 / shape);
}

double rng::lognormal(double mu, double sigma) {
  return portable::exp(mu + sigma * normal());
}

void rng::turn() {
  while (branches_ != nullptr && branches_->reached) {
    // The state says which stream this is and how far it was. So streams stay unrelated.
    std::uint64_t seed = branches_->seed, mixed = splitmix64(seed);
    for (const std::uint64_t part : state_) {
      mixed ^= part;
      mixed = splitmix64(mixed);
    }
    const auto* ahead = branches_->next;
    *this = rng(mixed);
    branches_ = ahead;
  }
}

rng stream(run_seed seed, std::string_view name, std::uint64_t a, std::uint64_t b) {
  // Each argument is mixed into the result of the previous one. So exchanged arguments, and
  // neighbouring seeds and peers, give unrelated streams.
  std::uint64_t mixed = splitmix64(seed.first);
  for (const std::uint64_t part : {fnv1a(name), a, b}) {
    mixed ^= part;
    mixed = splitmix64(mixed);
  }
  rng out(mixed);
  out.branches_ = seed.branches;
  return out;
}

std::array<std::byte, 32> random_secret() {
  std::array<std::byte, 32> out;
  randombytes_buf(out.data(), out.size());
  return out;
}

rng secret_stream(std::span<const std::byte> secret, std::string_view name, std::uint64_t a,
                  std::uint64_t b) {
  const auto hash = hasher{}
                        .add(std::string_view{"shoal.secret_stream"})
                        .add(secret)
                        .add(name)
                        .add(a)
                        .add(b)
                        .finish();
  std::array<std::uint64_t, 4> state;
  static_assert(sizeof state == sizeof hash.bytes);
  std::memcpy(state.data(), hash.bytes.data(), sizeof state);
  return rng(state);
}

} // namespace shoal
