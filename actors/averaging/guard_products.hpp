// Scalar products, by which the members of a round check each other's parts: checks V1 and V2.
// Source: Gorbunov et al., "Secure Distributed Training at Scale", arXiv:2106.11257, algorithm 5.
//
// The result v of a part is the fixed point of sum_i w_i clip(x_i - v, r_i) = 0, chunk by chunk.
// The mean is the case of infinite radii. With a random direction z that nobody knew before the
// result was certified, member i tells
//   s_i = sum over its chunks c of <z_c, clip(x_i,c - v_c, r_i,c)>
// and so |sum_i w_i s_i| is rounding for a correct v. A shift of v by a vector e shows as
// W <z, e>, which is about W |e| / sqrt(d) for d values.
//
// Rounding. v is stored in float32, and clipping never lengthens a difference. So v's rounding adds
// at most W 2^-24 sum_k |z_k v_k|. The sums of doubles add (n + d + 8) 2^-53 of the magnitudes in
// them, and an iterated aggregator at most W times its last step. tolerance() is twice their sum.
#pragma once

#include "actors/averaging/part_layout.hpp"
#include "actors/averaging/round.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/payload.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace shoal::actors {

struct part_product {
  double product = 0; ///< s_i
  double norm = 0;    ///< the length of the difference before clipping
};

/// The clipping radii of a round, which its aggregator uses: guard_options::radius.
struct clipping {
  bool clips = false;
  double radius = 0;
  std::uint64_t base_batch = 1, values = 0;

  /// The radius for a chunk of `count` values of a contribution of `weight` samples.
  double radius_of(std::uint64_t count, std::uint64_t weight) const;
};
clipping clipping_of(const averaging_config& how, std::uint64_t values);

class part_products {
public:
  /// `result`: the round's vector. `senders`: by chunk of the part, ascending. Requires: the values
  /// are not size-only.
  part_products(const part_layout& layout, std::uint32_t part, const digest& random,
                const payload& result, std::vector<std::vector<std::uint32_t>> senders,
                clipping clip);

  /// `values`: the member's values of a chunk, as the codec left them. Chunks in which the member
  /// is no sender do not count.
  part_product of(std::uint32_t member, std::uint64_t weight,
                  const std::function<payload(std::uint32_t chunk)>& values) const;
  /// All members that are senders of some chunk, ascending.
  std::vector<std::uint32_t> senders() const;
  /// The largest |sum_i w_i s_i| of a correct result. `weights` and `norms` by sender.
  double tolerance(std::span<const double> weights, std::span<const double> norms) const;

  /// Frees most of the memory. of() may not be called any more.
  void forget_direction() { direction_ = {}; }

private:
  bool sends(std::uint32_t member, std::uint32_t chunk) const;

  const part_layout& layout_;
  std::uint32_t part_;
  payload result_;
  std::vector<std::vector<std::uint32_t>> senders_;
  clipping clip_;
  std::vector<float> direction_;
  std::size_t count_ = 0; // values in the part
  double magnitude_ = 0;  // sum_k |z_k v_k|
};

/// Whether a member's product is the one that another member computed. Both compute in the same
/// order, so honest ones differ by at most 1e-9 of the norm.
bool same_product(const part_product& said, const part_product& found);

} // namespace shoal::actors
