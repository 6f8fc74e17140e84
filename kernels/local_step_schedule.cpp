#include "kernels/local_step_schedule.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace shoal::kernels {

namespace {

double seconds_of(const local_worker& worker) {
  return static_cast<double>(worker.steps) * worker.seconds_per_step;
}

void check_workers(std::span<const local_worker> workers) {
  SHOAL_CHECK(!workers.empty(), "somebody works");
  for (const auto& worker : workers)
    SHOAL_CHECK(worker.seconds_per_step > 0 && std::isfinite(worker.seconds_per_step) &&
                    worker.steps >= 1,
                "a worker's seconds and steps are above 0");
}

struct worker_state {
  double due = 0;         // when it delivers
  bool working = true;    // false: it waits for new parameters
  std::int64_t since = 0; // outer steps before its parameters
};

/// The worker that delivers first among those that still work.
std::optional<std::size_t> next_of(std::span<const worker_state> states) {
  std::optional<std::size_t> next;
  for (std::size_t i = 0; i < states.size(); ++i)
    if (states[i].working && (!next || states[i].due < states[*next].due)) next = i;
  return next;
}

} // namespace

double synchronous_round_seconds(std::span<const local_worker> workers) {
  check_workers(workers);
  double longest = 0;
  for (const auto& worker : workers) longest = std::max(longest, seconds_of(worker));
  return longest;
}

std::vector<delivery> schedule_deliveries(std::span<const local_worker> workers,
                                          const delivery_rules& rules, std::int64_t steps) {
  check_workers(workers);
  SHOAL_CHECK(rules.quorum >= 1 && rules.quorum <= workers.size(), "a quorum can come together");
  SHOAL_CHECK(rules.grace_seconds >= 0 && rules.round_seconds >= 0, "times are not negative");
  std::vector<delivery> out;
  std::vector<worker_state> states(workers.size());
  for (std::size_t i = 0; i < workers.size(); ++i) states[i].due = seconds_of(workers[i]);
  std::int64_t delivered = 0;
  for (std::int64_t window = 0;; ++window) {
    std::size_t come = 0;
    double opened = 0;
    auto next = next_of(states);
    for (; next; next = next_of(states)) {
      auto& state = states[*next];
      if (come >= rules.quorum && state.due - opened > rules.grace_seconds) break;
      delivered += workers[*next].steps;
      const auto outer_steps = static_cast<std::int64_t>(out.size());
      out.push_back({*next, state.due, delivered, window, outer_steps - state.since});
      if (delivered >= steps) return out;
      state.working = false;
      if (++come == rules.quorum) opened = state.due;
    }
    const bool waits = rules.when == hand_out::window_end && next;
    const double over = waits ? opened + rules.grace_seconds : out.back().at;
    const double start = over + rules.round_seconds;
    for (std::size_t i = 0; i < states.size(); ++i)
      if (!states[i].working)
        states[i] = {start + seconds_of(workers[i]), true, static_cast<std::int64_t>(out.size())};
  }
}

std::vector<std::int64_t> dynamic_local_steps(std::span<const double> seconds_per_step,
                                              std::int64_t steps, std::int64_t least) {
  SHOAL_CHECK(!seconds_per_step.empty() && steps >= 1 && least >= 1, "somebody takes steps");
  const double fastest = *std::min_element(seconds_per_step.begin(), seconds_per_step.end());
  SHOAL_CHECK(fastest > 0, "a step takes time");
  std::vector<std::int64_t> out;
  for (const double seconds : seconds_per_step) {
    // A quotient that is a whole number may come out just below it.
    constexpr double rounding = 1e-9;
    const double share = static_cast<double>(steps) * fastest / seconds;
    out.push_back(std::max(least, static_cast<std::int64_t>(std::floor(share + rounding))));
  }
  return out;
}

} // namespace shoal::kernels
