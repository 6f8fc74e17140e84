// The window of one TCP connection, in steps of a round trip.
//
//   connecting   a new connection asks and is answered before its first byte: one round trip
//   slow start   W(0) = initial_window; each round trip in which the window was used up multiplies
//   it by
//                slow_start_growth; where a link is the limit, it grows by what the link carried
//   overflow     the window exceeds what the path holds, H = rate * RTT + queue / n for n flows at
//   the bottleneck (at
//                least 4 segments): W := beta W. Slow start notices late, at (1 + overshoot / n) H
//   avoidance    Reno: slow_start_growth - 1 segments for each round trip (1, or 1/2 where every
//   second packet is
//                acknowledged and windows grow by acknowledgement). CUBIC: W(t) = C (t - K)^3 +
//                W_max, K = cbrt(W_max (1 - beta) / C), in segments and seconds, and at least
//                Reno's (RFC 8312, 4.1 and 4.2)
//   idle         longer than a retransmission timeout: the window is initial_window again (RFC
//   5681, 4.1)
// rate <= W / RTT; rate <= max_window / RTT.
//
// Loss caps the rate of long transfers.
//   Reno: Padhye, Firoiu, Towsley, Kurose, "Modeling TCP Throughput", SIGCOMM 1998, eq. (30):
//     B = MSS / (RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2))
//   CUBIC: the greater of that and RFC 8312, eq. (6): B = 1.054 MSS / RTT * (RTT / p)^(3/4)
//
// Sharing of a full link: rates are as RTT^-rtt_bias (FIFO queues; Lakshman and Madhow, IEEE/ACM
// ToN 5(3), 1997); 0 stands for fair queueing.
//
// The defaults are Linux: CUBIC, growth 2, a FIFO queue of 100 packets. ns3_newreno() is ns-3 3.37
// as it comes (delayed acknowledgements, FqCoDel); its `queue` and `overshoot` were calibrated on
// six patterns, see docs/accuracy.md.
//
// Left out: the burstiness of packets, queueing delay in the RTT (only its overflow counts), which
// of equal flows is unlucky, retransmission timeouts, pacing, BBR, ECN. Of patterns with many flows
// the typical flow is met better than the last one.
#pragma once

#include "kernels/base/units.hpp"

#include <cstdint>
#include <limits>

namespace shoal::netem {

enum class congestion_control : std::uint8_t { reno, cubic };

struct tcp_options {
  congestion_control control = congestion_control::cubic;
  double segment = 1448;      ///< bytes of payload in a packet
  double initial_window = 10; ///< segments (RFC 6928)
  double slow_start_growth = 2;
  double max_window =
      4 * 1024 * 1024;        ///< bytes; Linux: the least of net.ipv4.tcp_wmem[2], tcp_rmem[2] / 2
  duration queue{};           ///< in front of each link, at its full rate,
  double queue_packets = 100; ///< and so many packets of 1500 bytes
  double overshoot =
      1; ///< slow start ends at (1 + overshoot / n) of what the path holds, n flows sharing
  double rtt_bias = 1; ///< on a full link rates are as RTT^-rtt_bias; 0: fair queueing
  duration least_timeout = std::chrono::milliseconds(200);
};

inline tcp_options ns3_newreno() {
  tcp_options out;
  out.control = congestion_control::reno;
  out.slow_start_growth = 1.5;
  out.max_window = 64 * 1024 * 1024;
  out.queue = std::chrono::milliseconds(3);
  out.queue_packets = 0;
  out.overshoot = 0.3;
  out.rtt_bias = 0;
  return out;
}

/// What a connection keeps from one transfer to the next.
struct tcp_window {
  bool connected = false;
  bool avoiding = false; ///< behind its first overflow
  double window = 0;     ///< bytes
  double threshold =
      std::numeric_limits<double>::infinity(); ///< slow start ends here at the latest, bytes
  double before_loss = 0;                      ///< W_max, bytes
  duration loss_at{};
  duration used_until{};
};

/// Bits per second that loss leaves a long transfer; infinite without loss.
double loss_cap(const tcp_options& options, double loss_events, duration round_trip);

/// The retransmission timeout after a first loss: RTT + least_timeout.
inline duration retransmission_timeout(const tcp_options& options, duration round_trip) {
  return round_trip + options.least_timeout;
}

/// What the network did with the window in the round trips that end now.
struct round_trip_seen {
  duration now{}, round_trip{};
  double round_trips = 1;      ///< so many have passed
  double rate = 0;             ///< bits/s that the flow got
  bool window_limited = false; ///< the window was all that limited it
  double queue_bytes = 0;      ///< this flow's share of the queue in front of its bottleneck
  double sharers = 1;          ///< flows at the bottleneck
};

/// The window of a transfer that begins now on a connection that is there.
void begin_transfer(const tcp_options& options, tcp_window& state, duration now,
                    duration round_trip);

/// Moves the window on by the round trips seen. True if the queue overflowed.
bool next_round_trip(const tcp_options& options, tcp_window& state, const round_trip_seen& seen);

/// As `count` calls of next_round_trip, one round trip after the other from `from` on, in which the
/// network does the same each time. Requires: !seen.window_limited, seen.round_trips == 1.
/// Complexity: O(log count) once it avoids congestion.
void next_round_trips(const tcp_options& options, tcp_window& state, round_trip_seen seen,
                      duration from, std::int64_t count);

/// Whether the window never limits a transfer of this rate, and did not in the round trip before,
/// as long as the network does the same.
bool never_limits(const tcp_options& options, const tcp_window& state, const round_trip_seen& seen);

/// A retransmission timeout: one segment, slow start up to half of what was under way (RFC 5681,
/// section 3.1).
void after_timeout(const tcp_options& options, tcp_window& state, duration now);

} // namespace shoal::netem
