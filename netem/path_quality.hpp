// The quality of the path between two hosts, in the terms of `tc netem`. Delay, jitter, loss,
// duplication and reordering are modelled. Jitter has a distribution and a correlation. Losses are
// independent, or come in bursts after Gilbert and Elliott.
//
// Messages travel on reliable connections that keep their order (TCP), so these effects appear as
// time and bytes:
// - jitter: offset = jitter * x(q), with q uniform in (0, 1). For uniform jitter x = 2q - 1; for
//   normal jitter x = z(q). For pareto x = ((1 - q)^(-1/3) - 3/2) / sqrt(3/4), the Pareto
//   distribution of shape 3 with mean 0 and deviation 1. For paretonormal x = (3 pareto + normal) /
//   4. The value x is cut at +-4, as in netem's tables. A delay is never negative.
// - correlation: q_n follows from q_(n-1) by a Gaussian copula, z_n = c z_(n-1) + sqrt(1 - c^2) e.
//   The copula keeps the distribution, while netem's own averaging of uniform numbers narrows it.
// - loss: a small message that loses a packet is sent again after a retransmission timeout, which
//   doubles each time. The message and all behind it on its connection wait, at most for the
//   detection time: by then a program opens another connection. A burst does not outlast a timeout.
//   Loss slows bulk by a cap; see netem/tcp.hpp.
// - duplicate: the sender sends the bytes twice, and the receiver drops the copy.
// - reorder: the message skips the delay, but does not overtake earlier messages on its connection.
// Determinism: all draws come from the sending host's stream.
#pragma once

#include "kernels/base/rng.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace shoal::netem {

enum class jitter_shape : std::uint8_t { uniform, normal, pareto, paretonormal };

/// Packet loss. Gilbert-Elliott is tc netem's `loss gemodel p r 1-h 1-k`. Before each packet, the
/// good state turns bad with probability p, and the bad state turns good with probability r. A
/// packet is lost with probability `in_bad` or `in_good`. With p = 0, losses are independent with
/// probability `rate`.
struct loss_model {
  double rate = 0;     ///< [0, 1)
  double p = 0, r = 1; ///< p > 0: bursts, r in (0, 1]
  double in_bad = 1, in_good = 0;

  bool any() const noexcept { return rate > 0 || p > 0; }
  bool bursts() const noexcept { return p > 0; }
  /// The share of lost packets in the long run.
  double mean() const noexcept;
  /// Loss events for each packet. Packets lost in a row are one event to TCP, which halves its
  /// window once in a round trip.
  double event_rate() const noexcept;
  bool operator==(const loss_model&) const = default;
};

struct path_quality {
  duration delay{};  ///< one way
  duration jitter{}; ///< uniform: the largest offset; others: the standard deviation
  jitter_shape shape = jitter_shape::uniform;
  /// between one message's jitter and the previous one's of the pair, [0, 1)
  double correlation = 0;
  loss_model loss{};
  double duplicate = 0;                                      ///< probability, [0, 1]
  double reorder = 0;                                        ///< probability, [0, 1]
  double flow_cap = std::numeric_limits<double>::infinity(); ///< bits/s of each connection
  bool operator==(const path_quality&) const = default;
};

/// The quality of several parts of a path in series. Delays add, losses combine as probabilities,
/// jitters add as deviations do, and the widest jitter gives the shape. If two losses are bursty,
/// the second one counts as independent.
path_quality in_series(std::initializer_list<const path_quality*> parts);

/// The state that one message's draw leaves for the next one of its pair of hosts. Used only for
/// paths with correlation or bursts.
struct path_memory {
  double z = 0;
  bool drawn = false;
  bool bad = false;
};

/// The factor x(q) of the formulas above for a standard normal z, with q = P(Z <= z).
double jitter_factor(jitter_shape shape, double z);
/// Draws the delay of one message. `memory` is used if correlation > 0.
duration draw_delay(const path_quality& path, rng& draws, path_memory* memory);
/// Draws how often a message of `packets` packets is sent again because of losses; at most 15
/// times.
unsigned draw_retransmissions(const loss_model& loss, std::uint64_t packets, rng& draws,
                              path_memory* memory);

/// Network coordinates (Dabek et al., "Vivaldi", SIGCOMM 2004), in seconds. The distance is that in
/// the plane plus the heights, which stand for the access lines.
struct coordinates {
  double x = 0, y = 0, height = 0;
};
duration distance(const coordinates& a, const coordinates& b);

} // namespace shoal::netem
