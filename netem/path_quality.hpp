// What the way between two hosts does to messages, in the words of `tc netem`: delay, jitter with a
// distribution and a correlation, loss (independent, or in bursts after Gilbert and Elliott),
// duplication, reordering.
//
// Messages travel on reliable connections that keep their order (TCP), so that these show as time
// and bytes:
//   jitter       offset = jitter * x(q), q uniform in (0, 1):  uniform x = 2q - 1; normal x = z(q);
//   pareto
//                x = ((1 - q)^(-1/3) - 3/2) / sqrt(3/4), the Pareto distribution of shape 3 with
//                mean 0 and deviation 1; paretonormal x = (3 pareto + normal) / 4; x is cut at +-4,
//                as netem's tables are. A delay is never negative.
//   correlation  q_n follows from q_(n-1) by a Gaussian copula, z_n = c z_(n-1) + sqrt(1 - c^2) e:
//   the
//                distribution stays what it is (netem's own averaging of uniform numbers narrows
//                it).
//   loss         a small message that loses one of its packets is sent again after a retransmission
//   timeout,
//                doubled each time; it and all behind it on its connection wait, at most for the
//                detection time: by then a program opens another connection. A burst does not
//                outlast a timeout. Bulk is slower by a cap, see netem/tcp.hpp.
//   duplicate    the copy's bytes are sent, and dropped by the receiver.
//   reorder      the message skips the delay, but not those before it on its connection.
// Determinism: all draws come from the sending host's stream.
#pragma once

#include "kernels/base/rng.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace shoal::netem {

enum class jitter_shape : std::uint8_t { uniform, normal, pareto, paretonormal };

/// Packet loss. Gilbert-Elliott (tc netem's `loss gemodel p r 1-h 1-k`): before each packet the
/// good state turns bad with probability p, the bad one good with probability r; a packet is lost
/// with probability `in_bad` or `in_good`. p = 0: independent losses with probability `rate`.
struct loss_model {
  double rate = 0;     ///< [0, 1)
  double p = 0, r = 1; ///< p > 0: bursts, r in (0, 1]
  double in_bad = 1, in_good = 0;

  bool any() const noexcept { return rate > 0 || p > 0; }
  bool bursts() const noexcept { return p > 0; }
  /// Share of the packets that are lost in the long run.
  double mean() const noexcept;
  /// Loss events for each packet: packets lost in a row are one event to TCP, which halves its
  /// window once in a round trip.
  double event_rate() const noexcept;
  bool operator==(const loss_model&) const = default;
};

struct path_quality {
  duration delay{};  ///< one way
  duration jitter{}; ///< uniform: +- this; others: the standard deviation
  jitter_shape shape = jitter_shape::uniform;
  double correlation = 0; ///< of one message's jitter with the last one's of this pair, [0, 1)
  loss_model loss{};
  double duplicate = 0;                                      ///< probability, [0, 1]
  double reorder = 0;                                        ///< probability, [0, 1]
  double flow_cap = std::numeric_limits<double>::infinity(); ///< bits/s of each connection
  bool operator==(const path_quality&) const = default;
};

/// What parts of a way, one after the other, do together. Delays add, losses and the like combine,
/// jitters add as deviations do; the widest one gives the shape. Of two bursty losses the second is
/// taken as independent ones.
path_quality in_series(std::initializer_list<const path_quality*> parts);

/// What one message's draw depends on from the last one of its pair of hosts; only where a path has
/// correlation or bursts.
struct path_memory {
  double z = 0;
  bool drawn = false;
  bool bad = false;
};

/// x(q) of the header for a standard normal z; q = P(Z <= z).
double jitter_factor(jitter_shape shape, double z);
/// The delay of one message. `memory` is used where correlation > 0.
duration draw_delay(const path_quality& path, rng& draws, path_memory* memory);
/// How often a message of so many packets has to be sent again because one of its packets was lost,
/// at most 15.
unsigned draw_retransmissions(const loss_model& loss, std::uint64_t packets, rng& draws,
                              path_memory* memory);

/// Network coordinates (Dabek et al., "Vivaldi", SIGCOMM 2004): distance in the plane plus the
/// heights, which stand for the access lines. In seconds.
struct coordinates {
  double x = 0, y = 0, height = 0;
};
duration distance(const coordinates& a, const coordinates& b);

} // namespace shoal::netem
