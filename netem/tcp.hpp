// The window of one TCP connection, in steps of a round trip.
//
// - connecting: a new connection needs one round trip before its first byte.
// - slow start: W(0) = initial_window. Each round trip that used up the window multiplies it by
//   slow_start_growth. If a link is the limit, the window grows by what the link carried.
// - overflow: the window exceeds the capacity of the path, H = rate * RTT + queue / n for n flows
//   at the bottleneck (at least 4 segments). Then W := beta W. Slow start notices late, at (1 +
//   overshoot / n) H.
// - avoidance with Reno: the window grows by slow_start_growth - 1 segments in each round trip.
//   That is 1, or 1/2 where every second packet is acknowledged and windows grow by
//   acknowledgement.
// - avoidance with CUBIC: `W(t) = C (t - K)^3 + W_max` with `K = cbrt(W_max (1 - beta) / C)`, in
//   segments and seconds. The window is at least Reno's (RFC 8312, 4.1 and 4.2).
// - idle: after more than a retransmission timeout, the window is initial_window again (RFC 5681,
//   4.1).
//
// The rate is limited by rate <= W / RTT and rate <= max_window / RTT.
//
// Loss caps the rate of long transfers.
//   Reno: Padhye, Firoiu, Towsley, Kurose, "Modeling TCP Throughput", SIGCOMM 1998, eq. (30):
//     B = MSS / (RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2))
//   CUBIC: the greater of that and RFC 8312, eq. (6): B = 1.054 MSS / RTT * (RTT / p)^(3/4)
//
// Flows share a full link in proportion to RTT^-rtt_bias (FIFO queues; Lakshman and Madhow,
// IEEE/ACM ToN 5(3), 1997). A bias of 0 stands for fair queueing.
//
// The defaults describe Linux: CUBIC, growth 2, a FIFO queue of 100 packets. ns3_newreno()
// describes ns-3 3.37 with its defaults (delayed acknowledgements, FqCoDel). Its `queue` and
// `overshoot` were calibrated on six patterns; see docs/accuracy.md.
//
// Left out: the burstiness of packets; queueing delay in the RTT (only overflow counts);
// differences of luck between equal flows; retransmission timeouts; pacing; BBR; ECN. For patterns
// with many flows, the typical flow is met better than the last one.
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
  /// Bytes. On Linux: the least of net.ipv4.tcp_wmem[2] and tcp_rmem[2] / 2.
  double max_window = 4 * 1024 * 1024;
  duration queue{};           ///< in front of each link, at its full rate
  double queue_packets = 100; ///< and this many packets of 1500 bytes
  /// Slow start ends at (1 + overshoot / n) of the path's capacity, for n flows that share.
  double overshoot = 1;
  double rtt_bias = 1; ///< rates on a full link are as RTT^-rtt_bias; 0: fair queueing
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

/// The state that a connection keeps from one transfer to the next.
struct tcp_window {
  bool connected = false;
  bool avoiding = false; ///< after its first overflow
  double window = 0;     ///< bytes
  /// Slow start ends here at the latest, bytes.
  double threshold = std::numeric_limits<double>::infinity();
  double before_loss = 0; ///< W_max, bytes
  duration loss_at{};
  duration used_until{};
};

/// The bits per second of a long transfer under loss; infinite without loss.
double loss_cap(const tcp_options& options, double loss_events, duration round_trip);

/// The retransmission timeout after a first loss: RTT + least_timeout.
inline duration retransmission_timeout(const tcp_options& options, duration round_trip) {
  return round_trip + options.least_timeout;
}

/// The observations of a connection in the round trips that end now.
struct round_trip_seen {
  duration now{}, round_trip{};
  double round_trips = 1;      ///< how many have passed
  double rate = 0;             ///< the flow's rate in bits/s
  bool window_limited = false; ///< only the window limited the rate
  double queue_bytes = 0;      ///< this flow's share of the queue in front of its bottleneck
  double sharers = 1;          ///< flows at the bottleneck
};

/// Prepares the window for a transfer that begins now on an open connection.
void begin_transfer(const tcp_options& options, tcp_window& state, duration now,
                    duration round_trip);

/// Advances the window by the round trips seen. Returns true if the queue overflowed.
bool next_round_trip(const tcp_options& options, tcp_window& state, const round_trip_seen& seen);

/// Equals `count` calls of next_round_trip, one for each round trip from `from` on, in which the
/// network behaves the same.
/// Requires: !seen.window_limited, seen.round_trips == 1.
/// Complexity: O(log count) during congestion avoidance.
void next_round_trips(const tcp_options& options, tcp_window& state, round_trip_seen seen,
                      duration from, std::int64_t count);

/// True if the window never limits a transfer of this rate while the network behaves the same. The
/// window must not have limited the last round trip either.
bool never_limits(const tcp_options& options, const tcp_window& state, const round_trip_seen& seen);

/// Applies a retransmission timeout: one segment, then slow start up to half of the bytes in flight
/// (RFC 5681, section 3.1).
void after_timeout(const tcp_options& options, tcp_window& state, duration now);

} // namespace shoal::netem
