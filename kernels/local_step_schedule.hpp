// The times at which workers of unequal speeds deliver pseudo-gradients, before anything is run.
// Worker i takes H_i local steps of s_i seconds and delivers. A round costs a constant time.
//   synchronous round of n workers:  max_i H_i s_i
//   asynchronous, no grace period, no two at once: sum_i floor(T / (H_i s_i)) deliveries until T
//   in general, window by window: the quorum-th delivery opens a window for the grace period.
//   The workers that deliver before it closes get new parameters together, at its last delivery or
//   at its end. The others work on; they deliver late, with stale parameters, to a later window.
// Quorum 1 is Async DiLoCo; a quorum of n, or a long grace period, is the synchronous round.
// Staleness: outer steps, one a delivery, since the worker got its parameters.
// Leaves out: transfers one by one, failures, speeds that change.
// Source: Liu et al., "Asynchronous Local-SGD Training for Language Modeling", arXiv:2401.09135
// (grace period; dynamic local updates), and google-deepmind/asyncdiloco. Its simulation hands out
// parameters at the last delivery, because it knows that no other worker will deliver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::kernels {

struct local_worker {
  double seconds_per_step = 0;
  std::int64_t steps = 0; ///< from one delivery to the next
};

enum class hand_out : std::uint8_t {
  last_delivery, ///< as if the workers knew which others will deliver
  window_end,    ///< the end of the grace period, or the delivery of the last worker
};

struct delivery_rules {
  std::size_t quorum = 1;
  double grace_seconds = 0;
  hand_out when = hand_out::last_delivery;
  double round_seconds = 0; ///< from there until the workers of the window begin again
};

struct delivery {
  std::size_t worker = 0;
  double at = 0;              ///< seconds
  std::int64_t steps = 0;     ///< local steps in all deliveries so far, this one included
  std::int64_t window = 0;    ///< counted from 0
  std::int64_t staleness = 0; ///< outer steps since the worker got its parameters
};

/// The longest H_i s_i. Requires: as schedule_deliveries.
double synchronous_round_seconds(std::span<const local_worker> workers);

/// All deliveries in their order, up to the one with which `steps` local steps are delivered.
/// Among deliveries at the same time the one with the lowest worker index comes first.
/// Requires: workers, whose seconds and steps are above 0; a quorum from 1 to their number; times
/// >= 0. Complexity: O(n) a delivery.
std::vector<delivery> schedule_deliveries(std::span<const local_worker> workers,
                                          const delivery_rules& rules, std::int64_t steps);

/// Dynamic local updates: max(least, floor(steps min_j s_j / s_i)), so that all deliver at about
/// the same time. Requires: not empty, seconds above 0, steps >= 1, least >= 1.
std::vector<std::int64_t> dynamic_local_steps(std::span<const double> seconds_per_step,
                                              std::int64_t steps, std::int64_t least = 1);

} // namespace shoal::kernels
