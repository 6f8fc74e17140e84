// The window of one TCP connection, in steps of a round trip.
//
// - connecting: a new connection needs one round trip before its first byte.
// - slow start: W(0) = initial_window. Each round trip that used up the window multiplies it by
//   slow_start_growth. If a link is the limit, the window grows by what the link carried.
// - overflow: the window exceeds the capacity of the path, H = rate * RTT + queue / n for n flows
//   at the bottleneck (at least 4 segments). Then W := beta W. Slow start notices late, at (1 +
//   overshoot / n) H.
//   CUBIC also leaves slow start without a loss, once the queue delays it by an eighth of the round
//   trip. The bound is at least 4 and at most 16 ms. That is HyStart (Ha and Rhee, "Taming the
//   elephants", Computer Networks 55(9), 2011), as in Linux. The cubic's origin is then that
//   window.
// - avoidance with Reno: the window grows by slow_start_growth - 1 segments in each round trip.
//   That is 1, or 1/2 where every second packet is acknowledged and windows grow by
//   acknowledgement.
// - avoidance with CUBIC: `W(t) = C (t - K)^3 + W_max` with `K = cbrt(W_max (1 - beta) / C)`, in
//   segments and seconds. The window is at least Reno's (RFC 8312, 4.1 and 4.2).
// - the sender's own line: the host's queue pushes back, so nothing is lost there. The window grows
//   only while it limits the flow, to twice the bytes in flight at most. That is Linux's
//   tcp_is_cwnd_limited (see RFC 7661, 4). CUBIC's clock stands still.
// - idle: after more than a retransmission timeout, the window is initial_window again (RFC 5681,
//   4.1), unless the host's owner has turned that off.
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
// The defaults describe Linux: CUBIC, growth 2, a FIFO queue of 100 packets in front of each link.
// ns3_newreno() describes ns-3 3.37 with its defaults (delayed acknowledgements, FqCoDel). Its
// `queue` and `overshoot` were calibrated on six patterns; see docs/accuracy.md.
//
// Left out: the burstiness of packets; queueing delay in the RTT of bulk; differences of luck
// between equal flows; retransmission timeouts; pacing; BBR; ECN. For patterns with many flows, the
// typical flow is met better than the last one.
#pragma once

#include "kernels/base/units.hpp"

#include <cstdint>
#include <limits>

namespace shoal::netem {

enum class congestion_control : std::uint8_t { reno, cubic };

/// The queue in front of a link.
struct link_queue {
  duration time{};      ///< at the link's full rate
  double packets = 100; ///< and this many packets of 1500 bytes
  /// The queue delays its sender and drops nothing: the sender's own line. Linux's TCP small queues
  /// do so above a queueing discipline, and so does a virtual machine's network card.
  bool pushes_back = false;

  double bytes(double bits_per_second) const {
    return bits_per_second / 8 * to_seconds(time) + 1500 * packets;
  }
};

/// The most connections that carry bulk from one host to another.
inline constexpr std::uint32_t most_connections = 16;
/// The longest piece of a message on one of several connections, in bytes. The wire cuts messages
/// into such pieces for one connection, too.
inline constexpr std::uint64_t longest_piece = std::uint64_t{1} << 20;

struct tcp_options {
  congestion_control control = congestion_control::cubic;
  double segment = 1448;      ///< bytes of payload in a packet
  double initial_window = 10; ///< segments (RFC 6928)
  double slow_start_growth = 2;
  bool slow_start_after_idle = true; ///< Linux: net.ipv4.tcp_slow_start_after_idle
  /// Bytes. On Linux: the least of net.ipv4.tcp_wmem[2] and tcp_rmem[2] / 2.
  double max_window = 4 * 1024 * 1024;
  std::uint32_t connections = 1; ///< at most most_connections
  link_queue queue;              ///< in front of links that have none of their own
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
  out.queue = {std::chrono::milliseconds(3), 0};
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
  duration loss_at{};     ///< the origin of CUBIC's clock
  /// Where the window of a Reno flow began that CUBIC keeps up with, bytes.
  double friendly_from = 0;
  duration friendly_since{};
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
  bool pushes_back = false;    ///< the bottleneck is the sender's own line
  duration queue_delay{};      ///< the bottleneck's; only slow start looks at it
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

/// The bytes that such a flow keeps in the queue of its bottleneck at `seen.now`: the window, less
/// what the path holds. Once the window goes up and down between two overflows, its mean counts,
/// (1 + beta) / 2 of the greatest one. That is exact for Reno. CUBIC's fast convergence makes its
/// growth about linear, too (RFC 8312, 4.6).
double standing_bytes(const tcp_options& options, const tcp_window& state,
                      const round_trip_seen& seen);

/// Applies a retransmission timeout: one segment, then slow start up to half of the bytes in flight
/// (RFC 5681, section 3.1).
void after_timeout(const tcp_options& options, tcp_window& state, duration now);

} // namespace shoal::netem
