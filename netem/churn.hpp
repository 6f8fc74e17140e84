// When a host is there: its sessions [start, end) in order, drawn from distributions
// (netem/distributions.hpp) or replayed from a trace (netem/trace.hpp).
//
// A process alternates: session, gap, session, gap, ...; lengths are independent. Two streams per
// host, "churn.session:<host>" and "churn.gap:<host>": adding a host, or changing how long hosts
// are away, moves no other draw. It begins with a session; a stationary one begins in the middle of
// a session or a gap, as if it had always gone on: in a session with the probability mean session /
// (mean session + mean gap).
//
// Time of day: a gap passes at the rate a(t) = 1 + amplitude cos(2 pi (t - peak) / day), and the
// host is back when the integral of a since it left reaches the drawn length. So exponential gaps
// make arrivals an inhomogeneous Poisson process with its highest rate at the peak, and over whole
// days the mean gap stays what it is. Sessions are not changed.
//
// Outages strike a group: they alternate with quiet times in the stream "churn.outages:<group>",
// and each strikes each host with the probability `share` ("churn.outage:<host>"). A host that is
// struck is away for as long as it lasts; below it its own sessions go on, so that it is back with
// whatever session is due then.
//
// Source of the model: Nurmi, Brevik and Wolski, "Modeling machine availability in enterprise and
// wide-area distributed computing environments", Euro-Par 2005 (Weibull fits best, with a shape
// below 1).
#pragma once

#include "kernels/base/rng.hpp"
#include "kernels/base/units.hpp"
#include "netem/distributions.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace shoal::netem {

/// Half open; start < end.
struct session {
  duration start{}, end = forever;
  bool operator==(const session&) const = default;
};

/// Hosts come back more often at one time of day.
struct daily_rhythm {
  double amplitude = 0; ///< [0, 1]
  duration peak{};      ///< in the source's own time, [0, 24h)
};

struct process_options {
  bool stationary = false; ///< requires: neither stay nor gap is always
  daily_rhythm day{};
};

/// What takes a part of a group away together.
struct outages {
  lifetime every, lasting; ///< from the end of one to the next; how long it is
  double share = 1;        ///< of the group's hosts, [0, 1]
};

/// When a gap of `length` that begins at `from` ends.
duration end_of_gap(const daily_rhythm& day, duration from, duration length);

/// The sessions of one host, one at a time.
class session_source {
public:
  static session_source drawn(std::uint64_t seed, std::string_view host, const lifetime& stay,
                              const lifetime& gap, const process_options& how = {});
  /// `sessions` in order, without overlap. Shared, so that the hosts of a trace keep no copies.
  /// `loop` > 0: again from the beginning every so often; requires: no session ends after `loop`.
  static session_source replayed(std::shared_ptr<const std::vector<session>> sessions,
                                 duration loop = {});

  /// The same without the outages that strike `host`. `offset`: of its time 0, the outages count
  /// from 0.
  session_source interrupted(std::uint64_t seed, std::string_view group, std::string_view host,
                             const outages& by, duration offset) &&;

  /// The next session; none: it does not come back.
  std::optional<session> next();

private:
  struct process {
    lifetime_draws stay, gap;
    daily_rhythm day;
    duration at{};                        // when the next session begins
    std::optional<duration> first_stay{}; // of a session that began before 0
  };
  struct replay {
    std::shared_ptr<const std::vector<session>> sessions;
    duration loop{};
    std::size_t at = 0;
    duration begun{}; // of this time round
  };
  struct interruptions {
    lifetime_draws every, lasting;
    rng strikes;
    double share;
    duration offset;
    duration at{}; // when the one before ended
    session current{duration::zero(),
                    duration::zero()}; // the last one drawn that struck, in the host's time
    std::optional<session> rest{};     // of a session that was interrupted
  };

  session_source() = default;
  std::optional<session> next_drawn();
  std::optional<session> next_replayed();
  std::optional<session> next_undisturbed() { return process_ ? next_drawn() : next_replayed(); }
  /// Moves to the next outage that strikes; from the last one on, never.
  void next_outage();

  std::optional<process> process_;
  replay replay_;
  std::unique_ptr<interruptions> interruptions_; // few hosts have some
};

} // namespace shoal::netem
