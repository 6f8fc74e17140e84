// The random and adversarial vectors with which all codecs are tested, and comparisons of bits.
#pragma once

#include "kernels/base/rng.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace shoal::kernels {

struct test_vector {
  std::string name;
  std::vector<float> values;
};

inline std::vector<test_vector> test_vectors() {
  using limits = std::numeric_limits<float>;
  std::vector<test_vector> out;
  rng random = stream(21, "codecs");
  for (const std::size_t n : {0, 1, 7, 64, 4095, 4096, 4097, 65536}) {
    const auto add = [&](const char* name, auto element) {
      std::vector<float> values(n);
      for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(element(i));
      out.push_back({std::string(name) + " " + std::to_string(n), std::move(values)});
    };
    add("normal", [&](std::size_t) { return random.normal(); });
    add("heavy tails",
        [&](std::size_t) { return random.normal() * std::exp(random.uniform(-12, 12)); });
    add("far from zero", [&](std::size_t) { return 1000 + 0.01 * random.normal(); });
    add("zeros", [&](std::size_t i) { return i % 3 == 0 ? -0.0F : 0.0F; });
    add("all equal", [&](std::size_t) { return 0.1F; });
    add("one huge", [&](std::size_t i) { return i == n / 2 ? limits::max() : 1e-3F; });
    add("one huge negative",
        [&](std::size_t i) { return i == n / 2 ? limits::lowest() : random.normal(); });
    add("largest", [&](std::size_t i) { return i % 2 == 0 ? limits::max() : limits::lowest(); });
    add("all the largest", [&](std::size_t) { return limits::max(); });
    add("denormals", [&](std::size_t i) {
      return std::bit_cast<float>(
          static_cast<std::uint32_t>(random.below(1U << 23) | (i % 2) << 31));
    });
    add("smallest", [&](std::size_t i) { return i % 5 == 0 ? limits::denorm_min() : 0.0F; });
    add("any bits", [&](std::size_t) {
      auto bits = static_cast<std::uint32_t>(random.next());
      return std::bit_cast<float>((bits & 0x7f800000U) == 0x7f800000U ? bits & ~0x40000000U : bits);
    });
  }
  return out;
}

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

} // namespace shoal::kernels
