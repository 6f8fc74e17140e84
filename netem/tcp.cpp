#include "netem/tcp.hpp"

#include "kernels/base/portable_math.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shoal::netem {

namespace {

constexpr double cubic_c = 0.4;
// segments; below, timeouts would dominate, and the model leaves them out
constexpr double least_held = 4;

double beta_of(congestion_control control) {
  return control == congestion_control::reno ? 0.5 : 0.7;
}

double cbrt(double x) {
  return x <= 0 ? 0 : portable::pow(x, 1.0 / 3);
}

/// K of a cubic with this greatest window, seconds.
double seconds_to_origin(const tcp_options& options, double greatest) {
  return cbrt(greatest / options.segment * (1 - beta_of(options.control)) / cubic_c);
}

/// CUBIC's window at `now`, without limits.
double cubic_window(const tcp_options& options, const tcp_window& state, duration now,
                    duration round_trip) {
  const double beta = beta_of(options.control);
  const double rtt = std::max(to_seconds(round_trip), 1e-6);
  const double reno = state.friendly_from / options.segment +
                      3 * (1 - beta) / (1 + beta) * to_seconds(now - state.friendly_since) / rtt;
  const double from_k =
      to_seconds(now - state.loss_at) - seconds_to_origin(options, state.before_loss);
  return options.segment *
         std::max(cubic_c * from_k * from_k * from_k + state.before_loss / options.segment, reno);
}

/// Begins congestion avoidance after a loss at the window `before_loss`.
void reduce_window(tcp_window& state, double before_loss, double window, duration now) {
  state.before_loss = before_loss;
  state.window = state.threshold = window;
  state.avoiding = true;
  state.loss_at = state.friendly_since = now;
  state.friendly_from = window;
}

/// The queueing delay at which HyStart ends slow start.
double most_delay(duration round_trip) {
  return std::clamp(to_seconds(round_trip) / 8, 0.004, 0.016);
}

double carried_by(const round_trip_seen& seen) {
  return seen.rate / 8 * to_seconds(seen.round_trip);
}

/// The window above which the queue overflows.
double held_by(const tcp_options& options, const round_trip_seen& seen) {
  return std::max(carried_by(seen) + seen.queue_bytes, least_held * options.segment);
}

} // namespace

double loss_cap(const tcp_options& options, double p, duration round_trip) {
  if (p <= 0) return std::numeric_limits<double>::infinity();
  const double rtt = std::max(to_seconds(round_trip), 1e-6);
  const double timeout = to_seconds(retransmission_timeout(options, round_trip));
  const double acked = 2; // b: packets for each acknowledgement
  const double reno = options.segment / (rtt * std::sqrt(2 * acked * p / 3) +
                                         timeout * std::min(1.0, 3 * std::sqrt(3 * acked * p / 8)) *
                                             p * (1 + 32 * p * p));
  double bytes = reno;
  if (options.control == congestion_control::cubic)
    bytes = std::max(bytes, 1.054 * options.segment / rtt * portable::pow(rtt / p, 0.75));
  return 8 * bytes;
}

void begin_transfer(const tcp_options& options, tcp_window& state, duration now,
                    duration round_trip) {
  const double initial = options.initial_window * options.segment;
  const bool idle = options.slow_start_after_idle &&
                    now - state.used_until > retransmission_timeout(options, round_trip);
  if (state.window > 0 && !idle) return;
  if (state.window > 0)
    state.threshold = std::max(state.avoiding ? 0.0 : state.threshold, state.window);
  state.window = initial;
  state.avoiding = false;
}

bool next_round_trip(const tcp_options& options, tcp_window& state, const round_trip_seen& seen) {
  const double beta = beta_of(options.control);
  const double carried = carried_by(seen);
  if (seen.pushes_back && !seen.window_limited) {
    if (!state.avoiding) {
      const auto most = std::min({2 * carried, state.threshold, options.max_window});
      const auto grown =
          state.window + (options.slow_start_growth - 1) * carried * seen.round_trips;
      state.window = std::max(state.window, std::min(grown, most));
    } else {
      const auto passed = from_seconds(seen.round_trips * to_seconds(seen.round_trip));
      state.loss_at += passed;
      state.friendly_since += passed;
    }
    return false;
  }
  if (!state.avoiding) {
    const double growth = options.slow_start_growth;
    if (seen.window_limited)
      state.window *= seen.round_trips == 1 ? growth : portable::pow(growth, seen.round_trips);
    else
      state.window += (growth - 1) * carried * seen.round_trips;
    if (state.window >= state.threshold) {
      reduce_window(state, state.threshold / beta, state.threshold, seen.now);
    } else if (options.control == congestion_control::cubic &&
               to_seconds(seen.queue_delay) > most_delay(seen.round_trip)) {
      // No loss: the cubic's origin is here.
      reduce_window(state, state.window, state.window, seen.now);
      state.loss_at -= from_seconds(seconds_to_origin(options, state.window));
    }
  } else if (options.control == congestion_control::reno) {
    state.window += (options.slow_start_growth - 1) * options.segment * seen.round_trips;
  } else {
    state.window = cubic_window(options, state, seen.now, seen.round_trip);
  }
  state.window = std::min(state.window, options.max_window);
  const double held = held_by(options, seen);
  if (seen.window_limited || state.window <= held) return false;
  const double before =
      std::min(state.window, (state.avoiding ? 1 : 1 + options.overshoot / seen.sharers) * held);
  reduce_window(state, before, std::max(beta * before, options.segment), seen.now);
  return true;
}

void next_round_trips(const tcp_options& options, tcp_window& state, round_trip_seen seen,
                      duration from, std::int64_t count) {
  std::int64_t done = 0, cycle = 0;
  const auto at = [&](std::int64_t trip) { return from + trip * seen.round_trip; };
  while (done < count && !state.avoiding) {
    const auto before = state.window;
    seen.now = at(++done);
    next_round_trip(options, state, seen);
    if (!state.avoiding && state.window == before)
      return; // the flow carries nothing, has reached max_window, or its own line limits it
  }
  // During avoidance, the window after several round trips follows from the window at the last
  // overflow.
  const auto jump = [&](tcp_window from_here, std::int64_t trips) {
    seen.now = at(done + trips);
    seen.round_trips = static_cast<double>(trips);
    const bool overflows = next_round_trip(options, from_here, seen);
    return std::pair(from_here, overflows);
  };
  while (done < count) {
    auto [after, overflows] = jump(state, count - done);
    if (!overflows) {
      state = after;
      return;
    }
    std::int64_t first = count - done, before = 0; // the first overflow is in (before, first]
    while (first - before > 1) {
      const auto middle = before + (first - before) / 2;
      auto [there, too_much] = jump(state, middle);
      (too_much ? first : before) = middle;
      if (too_much) after = there;
    }
    state = after;
    done += first;
    // All cycles from one overflow to the next are equal.
    if (first == cycle) {
      const auto skipped = (count - done) / cycle * cycle;
      state.loss_at += skipped * seen.round_trip;
      state.friendly_since += skipped * seen.round_trip;
      done += skipped;
      cycle = 0;
    } else {
      cycle = first;
    }
  }
}

bool never_limits(const tcp_options& options, const tcp_window& state,
                  const round_trip_seen& seen) {
  constexpr double margin = 1 + 1e-9; // for rounding
  const double enough = margin * carried_by(seen);
  if (seen.window_limited || state.window < enough) return false;
  // HyStart looks at the delay in each round trip.
  if (!state.avoiding && !seen.pushes_back && options.control == congestion_control::cubic)
    return false;
  return seen.pushes_back || (beta_of(options.control) * held_by(options, seen) >= enough &&
                              options.max_window >= enough);
}

double standing_bytes(const tcp_options& options, const tcp_window& state,
                      const round_trip_seen& seen) {
  if (options.control == congestion_control::cubic && state.avoiding) {
    const double window = cubic_window(options, state, seen.now, seen.round_trip);
    if (window <= held_by(options, seen))
      return std::max(0.0, std::min(window, options.max_window) - carried_by(seen));
  }
  const double beta = beta_of(options.control);
  const double greatest = std::min(held_by(options, seen), options.max_window);
  return std::max(0.0, (1 + beta) / 2 * greatest - carried_by(seen));
}

void after_timeout(const tcp_options& options, tcp_window& state, duration now) {
  state.threshold = std::max(state.window / 2, 2 * options.segment);
  state.window = options.segment;
  state.avoiding = false;
  state.loss_at = state.friendly_since = now;
}

} // namespace shoal::netem
