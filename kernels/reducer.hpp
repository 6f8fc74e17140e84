// What the owner of a part does with the group's contributions to it. A reducer may stream (the
// weighted mean adds each contribution and forgets it) or retain (robust methods compare them);
// either way it knows who contributed with what weight, so that a result stays attributable.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::kernels {

/// A sender whose values are in the result, and the weight they have there.
struct contribution {
  std::uint32_t sender = 0;
  double weight = 0;
  bool operator==(const contribution&) const = default;
};

class reducer {
public:
  virtual ~reducer() = default;

  /// Takes in one sender's values [size()]. Everything about them may be a peer's doing, so that
  /// nothing is assumed. Errors: a sender that was added before, a wrong size, a weight or value
  /// that cannot be used; the reducer is then as if add had not been called.
  virtual result<void> add(std::uint32_t sender, double weight, std::span<const float> values) = 0;

  /// The result [size()] of what was added so far; adding may go on. Errors: too few contributions.
  virtual result<std::vector<float>> finish() = 0;

  virtual std::size_t size() const noexcept = 0;

  /// Who is in the result, in the order added.
  virtual std::span<const contribution> contributions() const noexcept = 0;

  /// The denominator: the sum of contributions()'s weights, in that order.
  double total_weight() const {
    double total = 0;
    for (const contribution& c : contributions())
      total += c.weight;
    return total;
  }
  std::vector<std::uint32_t> senders() const {
    std::vector<std::uint32_t> out;
    for (const contribution& c : contributions())
      out.push_back(c.sender);
    return out;
  }
};

} // namespace shoal::kernels
