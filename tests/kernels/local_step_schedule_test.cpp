// kernels/local_step_schedule: the virtual times that google-deepmind/asyncdiloco prints, the
// closed form without a grace period, quorums, staleness and dynamic local updates.
//
// Figures: google-deepmind/asyncdiloco (Apache 2.0), AsyncLocalSGDToyExample.ipynb at commit
// e783a3071ce982c5b2007fcf271cb3fbfeb5db13: speeds, steps, grace periods and the printed times.
#include "kernels/local_step_schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace shoal::kernels;

namespace {

/// Four workers of 20 steps each: 11.6, 15.0, 30.2 and 66.6 s.
const std::vector<local_worker> four{{0.58, 20}, {0.75, 20}, {1.51, 20}, {3.33, 20}};

/// The times at which each `every` steps are delivered.
std::vector<double> times_at(const std::vector<delivery>& deliveries, std::int64_t every) {
  std::vector<double> out;
  for (const auto& one : deliveries)
    if (one.steps >= every * static_cast<std::int64_t>(out.size() + 1)) out.push_back(one.at);
  return out;
}

void check_times(const std::vector<double>& times, const std::vector<double>& printed) {
  REQUIRE(times.size() == printed.size());
  for (std::size_t i = 0; i < printed.size(); ++i) {
    CAPTURE(i);
    CHECK(std::fabs(times[i] - printed[i]) < 0.005);
  }
}

/// The time until which `count` deliveries of 20 steps are made, if no worker waits: the smallest T
/// with sum_i floor(T / (H_i s_i)) >= count.
double closed_form(const std::vector<local_worker>& workers, std::int64_t count) {
  std::vector<double> all;
  for (const auto& worker : workers)
    for (std::int64_t k = 1; k <= count; ++k)
      all.push_back(static_cast<double>(k * worker.steps) * worker.seconds_per_step);
  std::sort(all.begin(), all.end());
  return all[static_cast<std::size_t>(count - 1)];
}

} // namespace

TEST_CASE("a synchronous round of asyncdiloco's four workers takes 66.6 s") {
  CHECK(synchronous_round_seconds(four) == doctest::Approx(66.6));
  const std::vector<double> printed{66.6, 133.2, 199.8, 266.4, 333.0};
  // asyncdiloco checks that a long grace period is the synchronous method. A quorum of all workers
  // gives the same.
  check_times(times_at(schedule_deliveries(four, {.grace_seconds = 1000}, 400), 80), printed);
  check_times(times_at(schedule_deliveries(four, {.quorum = 4}, 400), 80), printed);
}

TEST_CASE("asyncdiloco's ten asynchronous times are reproduced with its grace period of 0.5 s") {
  const auto deliveries = schedule_deliveries(four, {.grace_seconds = 0.5}, 8000);
  check_times(times_at(deliveries, 800), {209.00, 406.40, 603.80, 801.40, 999.00, 1207.80, 1404.20,
                                          1600.60, 1800.20, 1998.60});
  // The first window of two has the second worker's second delivery and the third one's first.
  const auto second = std::find_if(deliveries.begin(), deliveries.end(),
                                   [](const delivery& one) { return one.worker == 2; });
  CHECK(second->at == doctest::Approx(30.2));
  CHECK(std::prev(second)->at == doctest::Approx(30.0));
  CHECK(std::prev(second)->window == second->window);
}

TEST_CASE("without a grace period the times are those of a sum of floors") {
  const auto deliveries = schedule_deliveries(four, {}, 8000);
  for (std::size_t i = 0; i < deliveries.size(); ++i)
    REQUIRE(deliveries[i].at ==
            doctest::Approx(closed_form(four, static_cast<std::int64_t>(i + 1))).epsilon(1e-9));
  CHECK(times_at(deliveries, 800).front() == doctest::Approx(208.8));
}

TEST_CASE("a window that waits for its end hands out there, or when all workers have delivered") {
  const delivery_rules rules{.grace_seconds = 4, .when = hand_out::window_end};
  const std::vector<local_worker> workers{{1, 10}, {1.2, 10}, {3, 10}};
  const auto deliveries = schedule_deliveries(workers, rules, 70);
  struct expected {
    std::size_t worker;
    double at;
    std::int64_t window, staleness;
  };
  // 10 and 12 s share a window until 14 s. The third worker's first delivery is two outer steps
  // old. It is alone in the window from 24 to 28 s, and opens one at 30 s.
  const std::vector<expected> hand_computed{{0, 10, 0, 0}, {1, 12, 0, 1}, {0, 24, 1, 0},
                                            {1, 26, 1, 1}, {2, 30, 2, 4}, {0, 38, 3, 1},
                                            {1, 40, 3, 2}};
  REQUIRE(deliveries.size() == hand_computed.size());
  for (std::size_t i = 0; i < hand_computed.size(); ++i) {
    CAPTURE(i);
    CHECK(deliveries[i].worker == hand_computed[i].worker);
    CHECK(deliveries[i].at == doctest::Approx(hand_computed[i].at));
    CHECK(deliveries[i].window == hand_computed[i].window);
    CHECK(deliveries[i].staleness == hand_computed[i].staleness);
  }
  const auto all =
      schedule_deliveries(workers, {.grace_seconds = 100, .when = hand_out::window_end}, 60);
  CHECK(all.back().at == doctest::Approx(60));
}

TEST_CASE("a round's own time is added once a round") {
  const auto all = schedule_deliveries(four, {.quorum = 4, .round_seconds = 0.4}, 400);
  check_times(times_at(all, 80), {66.6, 133.6, 200.6, 267.6, 334.6});
  const auto alone = schedule_deliveries(four, {.round_seconds = 5}, 100);
  // The first worker begins again at 16.6 s and 33.2 s, the second one at 20.0 s.
  check_times(times_at(alone, 20), {11.6, 15.0, 28.2, 30.2, 35.0});
}

TEST_CASE("a quorum holds its window open until it is complete") {
  const auto deliveries = schedule_deliveries(four, {.quorum = 2, .grace_seconds = 0.5}, 80);
  // 11.6 and 15.0 s are one round. Both workers begin again at 15.0 s and deliver at 26.6 and 30.0
  // s. The third worker's 30.2 s is within the grace period.
  REQUIRE(deliveries.size() == 4);
  CHECK(deliveries[1].at == doctest::Approx(15.0));
  CHECK(deliveries[1].window == 0);
  CHECK(deliveries[2].at == doctest::Approx(26.6));
  CHECK(deliveries[3].at == doctest::Approx(30.0));
  CHECK(deliveries[3].window == 1);
  const auto longer = schedule_deliveries(four, {.quorum = 2, .grace_seconds = 0.5}, 100);
  CHECK(longer.back().worker == 2);
  CHECK(longer.back().at == doctest::Approx(30.2));
  CHECK(longer.back().window == 1);
}

TEST_CASE("dynamic local updates let slow workers take fewer steps, and deliver together") {
  const std::vector<double> seconds{0.58, 0.75, 1.51, 3.33};
  CHECK(dynamic_local_steps(seconds, 20) == std::vector<std::int64_t>{20, 15, 7, 3});
  // asyncdiloco's code takes at least 5.
  CHECK(dynamic_local_steps(seconds, 20, 5) == std::vector<std::int64_t>{20, 15, 7, 5});
  CHECK(dynamic_local_steps(std::vector<double>{0.1, 0.3, 0.7}, 21) ==
        std::vector<std::int64_t>{21, 7, 3});
  std::vector<local_worker> workers;
  const auto steps = dynamic_local_steps(seconds, 20);
  for (std::size_t i = 0; i < seconds.size(); ++i) workers.push_back({seconds[i], steps[i]});
  CHECK(synchronous_round_seconds(workers) == doctest::Approx(11.6));
}
