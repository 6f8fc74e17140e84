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
  const bool idle = now - state.used_until > retransmission_timeout(options, round_trip);
  if (state.window > 0 && !idle) return;
  if (state.window > 0)
    state.threshold = std::max(state.avoiding ? 0.0 : state.threshold, state.window);
  state.window = initial;
  state.avoiding = false;
}

bool next_round_trip(const tcp_options& options, tcp_window& state, const round_trip_seen& seen) {
  const double beta = beta_of(options.control);
  const double carried = carried_by(seen);
  if (!state.avoiding) {
    const double growth = options.slow_start_growth;
    if (seen.window_limited)
      state.window *= seen.round_trips == 1 ? growth : portable::pow(growth, seen.round_trips);
    else
      state.window += (growth - 1) * carried * seen.round_trips;
    if (state.window >= state.threshold) {
      state.window = state.threshold;
      state.avoiding = true;
      state.before_loss = state.window / beta;
      state.loss_at = seen.now;
    }
  } else if (options.control == congestion_control::reno) {
    state.window += (options.slow_start_growth - 1) * options.segment * seen.round_trips;
  } else {
    const double w_max = state.before_loss / options.segment;
    const double k = cbrt(w_max * (1 - beta) / cubic_c);
    const double t = to_seconds(seen.now - state.loss_at);
    const double rtt = std::max(to_seconds(seen.round_trip), 1e-6);
    const double reno = w_max * beta + 3 * (1 - beta) / (1 + beta) * t / rtt;
    const double from_k = t - k;
    state.window = options.segment * std::max(cubic_c * from_k * from_k * from_k + w_max, reno);
  }
  state.window = std::min(state.window, options.max_window);
  const double held = held_by(options, seen);
  if (seen.window_limited || state.window <= held) return false;
  state.before_loss =
      std::min(state.window, (state.avoiding ? 1 : 1 + options.overshoot / seen.sharers) * held);
  state.window = std::max(beta * state.before_loss, options.segment);
  state.threshold = state.window;
  state.avoiding = true;
  state.loss_at = seen.now;
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
      return; // the flow carries nothing, or has reached max_window
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
  return !seen.window_limited && state.window >= enough &&
         beta_of(options.control) * held_by(options, seen) >= enough &&
         options.max_window >= enough;
}

void after_timeout(const tcp_options& options, tcp_window& state, duration now) {
  state.threshold = std::max(state.window / 2, 2 * options.segment);
  state.window = options.segment;
  state.avoiding = false;
  state.loss_at = now;
}

} // namespace shoal::netem
