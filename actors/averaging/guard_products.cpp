#include "actors/averaging/guard_products.hpp"

#include "kernels/base/rng.hpp"
#include "kernels/robust/centered_clip.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

namespace shoal::actors {

namespace {

/// Independent values, uniform and of variance 1 / count: no difference is orthogonal to them with
/// a probability above zero.
std::vector<float> direction_of(const digest& random, std::uint32_t part, std::size_t count) {
  hasher seed;
  seed.add(random).add(part);
  const auto bytes = seed.finish().bytes;
  std::array<std::uint64_t, 4> state{};
  std::memcpy(state.data(), bytes.data(), sizeof state);
  state[0] |= 1;
  rng draws(state);
  const double scale = std::sqrt(3.0 / static_cast<double>(std::max<std::size_t>(count, 1)));
  std::vector<float> out(count);
  for (auto& z : out) z = static_cast<float>(draws.uniform(-scale, scale));
  return out;
}

constexpr double half_ulp = 0x1p-24, double_ulp = 0x1p-53;
constexpr double last_step = 1e-9; // an aggregator ends at this fraction of the smallest radius

} // namespace

double clipping::radius_of(std::uint64_t count, std::uint64_t weight) const {
  if (!clips) return std::numeric_limits<double>::infinity();
  return kernels::clip_radius(radius, count, values, static_cast<double>(base_batch),
                              static_cast<double>(weight));
}

clipping clipping_of(const averaging_config& how, std::uint64_t values) {
  clipping out;
  out.clips = how.guard != nullptr && how.aggregator->name == "centered_clip";
  out.values = values;
  if (!out.clips) return out;
  out.radius = how.guard->radius;
  out.base_batch = how.guard->base_batch;
  return out;
}

part_products::part_products(const part_layout& layout, std::uint32_t part, const digest& random,
                             const payload& result, std::vector<std::vector<std::uint32_t>> senders,
                             clipping clip)
    : layout_(layout), part_(part), result_(result), senders_(std::move(senders)), clip_(clip),
      direction_(direction_of(random, part, layout.grid(part).part_bytes / 4)),
      count_(direction_.size()) {
  std::size_t at = 0;
  for (std::uint32_t k = 0; k < senders_.size(); ++k) {
    const auto chunk = layout_.slice(result_, part_, k);
    for (const float v : chunk.floats())
      magnitude_ += std::abs(static_cast<double>(direction_[at++]) * static_cast<double>(v));
  }
}

bool part_products::sends(std::uint32_t member, std::uint32_t chunk) const {
  return std::binary_search(senders_[chunk].begin(), senders_[chunk].end(), member);
}

part_product part_products::of(std::uint32_t member, std::uint64_t weight,
                               const std::function<payload(std::uint32_t)>& values) const {
  part_product out;
  double square = 0;
  for (std::uint32_t k = 0; k < senders_.size(); ++k) {
    if (!sends(member, k)) continue;
    const auto at = layout_.grid(part_).offset(k) / 4;
    const auto chunk = layout_.slice(result_, part_, k);
    const auto given = values(k);
    const auto v = chunk.floats(), x = given.floats();
    double product = 0, squares = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      const double difference = static_cast<double>(x[i]) - static_cast<double>(v[i]);
      product += static_cast<double>(direction_[at + i]) * difference;
      squares += difference * difference;
    }
    const double length = std::sqrt(squares), radius = clip_.radius_of(v.size(), weight);
    out.product += length > radius ? product * (radius / length) : product;
    square += squares;
  }
  out.norm = std::sqrt(square);
  return out;
}

std::vector<std::uint32_t> part_products::senders() const {
  std::set<std::uint32_t> all;
  for (const auto& chunk : senders_) all.insert(chunk.begin(), chunk.end());
  return {all.begin(), all.end()};
}

double part_products::tolerance(std::span<const double> weights,
                                std::span<const double> norms) const {
  double total = 0, magnitudes = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    total += weights[i];
    // The direction's length is at most sqrt(3).
    magnitudes += weights[i] * (magnitude_ + std::sqrt(3.0) * norms[i]);
  }
  const auto terms = static_cast<double>(weights.size() + count_ + 8);
  double out = total * half_ulp * magnitude_ + terms * double_ulp * magnitudes;
  if (clip_.clips)
    // Each chunk ends within this fraction of its smallest radius, and its products are sums too.
    for (std::uint32_t k = 0; k < senders_.size(); ++k) {
      const auto count = layout_.grid(part_).size(k) / 4;
      double radius = 0;
      for (const auto w : weights)
        radius = std::max(radius, clip_.radius_of(count, static_cast<std::uint64_t>(w)));
      out += total * radius * (last_step + terms * 8 * double_ulp);
    }
  return 2 * out + std::numeric_limits<float>::denorm_min() * total;
}

bool same_product(const part_product& said, const part_product& found) {
  const double allowed = 1e-9 * found.norm;
  // The comparison is false for NaN.
  return std::abs(said.product - found.product) <= allowed &&
         std::abs(said.norm - found.norm) <= allowed;
}

} // namespace shoal::actors
