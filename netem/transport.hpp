// Transfers of bytes over paths: a named model on top of max-min sharing (netem/flow_network.hpp).
// - max_min: a transfer has its share of the links at once, and arrives one delay after its last
//   byte has left. Exact.
// - lv08: SimGrid's default, for cross-checks. time = 13.01 * delay + size / share, where links
//   carry 97 % of their capacity, and the way back is charged 5 % of the rate. The model has rate
//   <= 4 MiB / (2 delay) and share ~ 1 / (delay + sum 20537 / capacity). Source: Velho and Legrand,
//   "Accuracy study and improvement of network simulation in the SimGrid framework", SIMUTools
//   2009; parameters of SimGrid 3.32.
// - tcp: connection set-up, slow start, window over RTT, loss (netem/tcp.hpp).
// In all models, a cap limits each transfer.
//
// With tcp, queueing_delay() is the time that other packets wait at a link behind the bulk there.
//
// Left out in all models: queueing delay of bulk, routes that change, losses at links that are not
// the bottleneck.
// Determinism: the same calls in the same order give the same results in the same order.
// Complexity: max_min adds nothing to flow_network; lv08 adds one timer; tcp adds one timer for
// each round trip in which the window can matter.
// Thread safety: none.
#pragma once

#include "netem/flow_network.hpp"
#include "netem/tcp.hpp"
#include "netem/transfer_model.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <vector>

namespace shoal::netem {

/// The conditions of a path that may change during a transfer.
struct path_now {
  duration delay{}; ///< one way
  duration round_trip{};
  double loss_events = 0; ///< for each packet
  double cap = unlimited; ///< bits/s
};

struct transfer_request : path_now {
  std::span<const link_id> path;
  std::span<const link_id> way_back; ///< lv08 only
  std::uint64_t bytes = 0;           ///< on the wire
  std::uint64_t tag = 0;             ///< identifies the transfer in all reports
  tcp_window connection;             ///< from the end of the connection's last transfer; tcp only
};

struct finished_transfer {
  std::uint64_t tag = 0;
  duration at{}; ///< max_min and tcp: the last byte left; lv08: it arrived
  tcp_window connection;
};

/// A transfer has this rate from `at` on.
struct rate_change {
  std::uint64_t tag = 0;
  duration at{};
  double bits_per_second = 0;
  rate_limit why = rate_limit::link;
  link_id link{};            ///< for rate_limit::link
  std::uint32_t sharers = 0; ///< transfers on that link
};

class transport {
public:
  using transfer_id = flow_id;
  /// The most links of a path.
  static constexpr std::uint32_t most_links = 20;

  explicit transport(transfer_model model = transfer_model::max_min, tcp_options tcp = {});

  transfer_model model() const noexcept { return model_; }
  /// True if a finished transfer arrives only one delay later.
  bool delay_follows() const noexcept { return model_ != transfer_model::lv08; }

  link_id add_link(double bits_per_second) { return add_link(bits_per_second, tcp_.queue); }
  link_id add_link(double bits_per_second, const link_queue& queue);
  void set_capacity(link_id link, double bits_per_second, duration now);
  double capacity(link_id link) const;
  std::size_t flows_on(link_id link) const { return flows_.count_on(link); }
  /// The wait of a packet that joins the link's queue. The queue has the windows of the flows that
  /// the link limits, less what is on its way, up to its length. Steady flows count with their
  /// mean. The wait is 0 where the queue pushes back, since small messages pass the bulk there. The
  /// other models have no queues. Complexity: O(flows on the link).
  duration queueing_delay(link_id link, duration now) const;

  /// Starts a transfer. Callers pass the time with every change; it never goes back. advance() must
  /// have removed all transfers that end before `now`.
  transfer_id start(const transfer_request& what, duration now);
  /// Cancels a transfer. Returns the bytes that have not left, rounded up.
  std::uint64_t cancel(transfer_id transfer, duration now);

  /// Sets the path conditions of a transfer from now on.
  void change(transfer_id transfer, const path_now& way, duration now);
  /// Stops a transfer until go_on(). With model tcp, it then restarts in slow start, as after a
  /// timeout.
  void stop(transfer_id transfer, duration now);
  void go_on(transfer_id transfer, const path_now& way, duration now);

  /// The next time at which advance() has work.
  std::optional<duration> next_event();
  /// Moves to `now`, and appends the transfers that end, ordered by end and then by start.
  void advance(duration now, std::vector<finished_transfer>& out);

  std::size_t active() const noexcept {
    return model_ == transfer_model::max_min ? flows_.active() : active_;
  }
  /// Sets a callback for every change of a rate, in order of time for each transfer.
  void on_rate(std::function<void(const rate_change&)> told);

  const tcp_options& tcp() const noexcept { return tcp_; }

private:
  struct record {
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
    flow_id flow;
    bool flowing = false;
    bool alive = false;
    bool stopped = false;
    std::uint32_t generation = 0;
    std::uint32_t path_length = 0, back_length = 0;
    std::uint64_t timer = 0; // the number of the valid timer
    link_id path[most_links], back[most_links];
    duration delay{}, round_trip{};
    double loss_cap = unlimited, cap = unlimited;
    double now_cap = unlimited;
    // the window has grown for the time until counted_until
    duration flowing_since{}, counted_until{};
    rate_limit cap_why = rate_limit::cap;
    tcp_window connection;
    bool parked = false;    // no timer: the window cannot matter before the rate changes
    round_trip_seen steady; // the observation of each round trip while parked
  };
  struct timer {
    duration at;
    std::uint64_t number;
    std::uint32_t slot;
    bool operator>(const timer& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  void set_timer(std::uint32_t slot, duration at);
  bool next_timer();
  void timers_due(duration now);
  void begin_flow(std::uint32_t slot, duration now);
  void last_round_trip(record& r, duration now);
  void round_trip_over(std::uint32_t slot, duration now);
  round_trip_seen see(const record& r, duration now);
  void park_or_wait(std::uint32_t slot, const round_trip_seen& seen);
  void catch_up(record& r, duration now);
  void unpark(std::uint32_t slot, duration now);
  void follow_rates();
  double window_cap(const record& r, rate_limit& why) const;
  void set_cap(record& r, duration now);
  void finish(duration now, std::vector<finished_transfer>& out);
  void say(std::uint32_t slot, duration at, double rate, rate_limit why);
  void tell_rates();

  transfer_model model_;
  tcp_options tcp_;
  flow_network flows_;
  std::vector<link_queue> queues_; // by link
  std::vector<record> records_;
  std::vector<std::uint32_t> free_;
  std::priority_queue<timer, std::vector<timer>, std::greater<>> timers_;
  std::uint64_t next_timer_ = 1;
  std::size_t active_ = 0;
  std::vector<finished_flow> ended_;
  std::vector<flow_network::rate_note> rates_;
  std::vector<flow_network::rate_changed> changed_, following_;
  std::function<void(const rate_change&)> told_;
};

} // namespace shoal::netem
