// The sessions of a host: the intervals [start, end) in which it is up, in order. Sessions are
// drawn from distributions (netem/distributions.hpp) or replayed from a trace (netem/trace.hpp).
//
// Drawn sessions alternate with gaps, with independent lengths. Each host has two random streams,
// "churn.session:<host>" and "churn.gap:<host>". So a new host, or another gap distribution,
// changes no other draw. A process begins with a session. A stationary process begins as if it had
// run forever. It begins inside a session with the probability mean session / (mean session + mean
// gap), and otherwise inside a gap.
//
// Time of day: a gap passes at the rate
//   a(t) = 1 + amplitude cos(2 pi (t - peak) / day)
// and ends when the integral of `a` over the gap reaches the drawn length. Exponential gaps thus
// make arrivals an inhomogeneous Poisson process with its highest rate at the peak. Over whole days
// the mean gap does not change. Sessions are not affected.
//
// Outages strike a group. They alternate with quiet times in the stream "churn.outages:<group>".
// Each outage strikes each host with the probability `share` ("churn.outage:<host>"). A struck host
// is down until the outage ends. Its own sessions continue underneath, so it returns into the
// session that is due then.
//
// Source: Nurmi, Brevik and Wolski, "Modeling machine availability in enterprise and wide-area
// distributed computing environments", Euro-Par 2005. They find that a Weibull distribution with a
// shape below 1 fits best.
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

/// A half-open interval, with start < end.
struct session {
  duration start{}, end = forever;
  bool operator==(const session&) const = default;
};

/// Makes hosts return more often at one time of day.
struct daily_rhythm {
  double amplitude = 0; ///< [0, 1]
  duration peak{};      ///< in the source's own time, [0, 24h)
};

struct process_options {
  bool stationary = false; ///< requires that neither stay nor gap is `always`
  daily_rhythm day{};
};

/// Events that take a part of a group down at the same time.
struct outages {
  lifetime every, lasting; ///< the gap between two outages; an outage's length
  double share = 1;        ///< the share of the group's hosts that an outage strikes, [0, 1]
};

/// The end of a gap of `length` that begins at `from`.
duration end_of_gap(const daily_rhythm& day, duration from, duration length);

/// The sessions of one host, one at a time.
class session_source {
public:
  static session_source drawn(run_seed seed, std::string_view host, const lifetime& stay,
                              const lifetime& gap, const process_options& how = {});
  /// Replays `sessions`, which are in order and do not overlap. Hosts of one trace share them. With
  /// `loop` > 0, the sessions repeat with this period. Requires: no session ends after `loop`.
  static session_source replayed(std::shared_ptr<const std::vector<session>> sessions,
                                 duration loop = {});

  /// The same sessions without the outages that strike `host`. Outages count from time 0; `offset`
  /// is the outages' time at this source's time 0.
  session_source interrupted(run_seed seed, std::string_view group, std::string_view host,
                             const outages& by, duration offset) &&;

  /// The next session. Returns nothing if the host does not return.
  std::optional<session> next();

private:
  struct process {
    lifetime_draws stay, gap;
    daily_rhythm day;
    duration at{};                        // when the next session begins
    std::optional<duration> first_stay{}; // the rest of a session that began before 0
  };
  struct replay {
    std::shared_ptr<const std::vector<session>> sessions;
    duration loop{};
    std::size_t at = 0;
    duration begun{}; // the start of the current repetition
  };
  struct interruptions {
    lifetime_draws every, lasting;
    rng strikes;
    double share;
    duration offset;
    duration at{}; // when the previous outage ended
    // The last drawn outage that strikes, in the host's time.
    session current{duration::zero(), duration::zero()};
    std::optional<session> rest{}; // the rest of an interrupted session
  };

  session_source() = default;
  std::optional<session> next_drawn();
  std::optional<session> next_replayed();
  std::optional<session> next_undisturbed() { return process_ ? next_drawn() : next_replayed(); }
  /// Draws outages up to the next one that strikes. After the last one, there is none.
  void next_outage();

  std::optional<process> process_;
  replay replay_;
  std::unique_ptr<interruptions> interruptions_; // most hosts have none
};

} // namespace shoal::netem
