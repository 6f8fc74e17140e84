// Streaming DiLoCo: the parameters are cut into fragments. Each fragment has outer rounds of its
// own, so that a round moves few bytes and overlaps with local steps.
//   blocks: a transformer layer is one block; a tensor outside of the layers is a block of its own
//   sequential: fragment p has blocks [B p / P, B (p + 1) / P);  strided: blocks p, p + P, p + 2 P
//   H = `period`, P = `fragments`, tau = `delay`, k = 1..P the fragment's number counted from 1:
//   sent after local step t     if t = t_k modulo H,  t_k = floor(k H / P), or less tau (see below)
//   applied after local step t  if t = t_k + tau modulo H
//   applied: local = alpha local + (1 - alpha) outer, after the outer step of this fragment
// `align` says which of the two falls on the multiples of H / P. With `sending` a fragment leaves
// there. With `applying` a round ends there, and its fragment left tau steps before. The second is
// torchft's schedule. It counts fragments by successful rounds (fragment_of_round), so that a
// failed round is repeated.
// Source: Douillard et al., "Streaming DiLoCo with overlapping communication", arXiv:2501.18512
// (fragments, patterns, tau, alpha); torchft (pytorch/torchft, BSD 3-Clause, torchft/local_sgd.py).
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace shoal::kernels {

/// Elements [begin, end) of a flat vector.
struct element_range {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const element_range&) const = default;
};

/// Ascending, disjoint, not adjacent.
using fragment = std::vector<element_range>;

std::size_t size_of(const fragment& which) noexcept;

enum class fragment_pattern : std::uint8_t { sequential, strided };
constexpr auto names_of(fragment_pattern) {
  return std::array{std::pair{fragment_pattern::sequential, "sequential"},
                    std::pair{fragment_pattern::strided, "strided"}};
}

/// Cuts a vector with this layout into `count` fragments, which together hold each element once.
/// Tensors belong to one layer if their names agree up to the first '.'.
/// Errors: count is 0 or above the number of blocks.
result<std::vector<fragment>> make_fragments(std::span<const tensor_slot> layout, std::size_t count,
                                             fragment_pattern pattern);

/// Cuts n elements without a layout into `count` contiguous fragments, whose sizes differ by one at
/// most. Errors: count is 0 or above n.
result<std::vector<fragment>> make_fragments(std::size_t n, std::size_t count);

/// Copies the fragment's elements of `vector` to `out` [size_of(which)], in order.
void gather(const fragment& which, std::span<const float> vector, std::span<float> out);
/// The inverse: writes `values` [size_of(which)] to the fragment's elements of `vector`.
void scatter(const fragment& which, std::span<const float> values, std::span<float> vector);

/// local = alpha local + (1 - alpha) outer. alpha 0 is exactly `outer`, whatever `local` holds, and
/// alpha 1 is exactly `local`. Requires: equal sizes, alpha from 0 to 1.
void blend(double alpha, std::span<const float> outer, std::span<float> local);

enum class fragment_align : std::uint8_t { sending, applying };

struct fragment_schedule {
  std::int64_t period = 100; ///< H: local steps from one round of a fragment to its next one
  std::int64_t fragments = 1;
  std::int64_t delay = 0; ///< tau: local steps between sending and applying
  double alpha = 0;       ///< the weight of the local parameters in an applied fragment
  fragment_align align = fragment_align::sending;
  bool operator==(const fragment_schedule&) const = default;
};

/// Errors: a period below 1, fragments outside [1, period], an alpha outside [0, 1], or a delay
/// below 0 or not below the period. With `applying` the delay must be below period / fragments: one
/// fragment at a time.
result<void> validate(const fragment_schedule& schedule);

/// The local step of each period after which fragment p is sent: t_k above, from 1 to period.
/// Requires: validate(schedule), p < fragments.
std::int64_t first_sent_after(const fragment_schedule& schedule, std::int64_t p);

struct fragment_actions {
  std::optional<std::size_t> send; ///< the fragment whose pseudo-gradient is taken and sent
  std::optional<std::size_t>
      apply; ///< the fragment whose outer step is taken and blended in, after the sending
  bool operator==(const fragment_actions&) const = default;
};

/// The fragments that are sent and applied after local step `t`, counted from 1.
/// Requires: validate(schedule), t >= 1. Complexity: O(1).
fragment_actions actions_after(const fragment_schedule& schedule, std::int64_t t);

/// The fragment of the round that follows `rounds` successful ones. This is for peers that count
/// rounds, because their local steps differ. Requires: rounds >= 0.
std::size_t fragment_of_round(const fragment_schedule& schedule, std::int64_t rounds);

} // namespace shoal::kernels
