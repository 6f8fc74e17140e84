#include "actors/averaging/answer_times.hpp"
#include "actors/ids.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;
using namespace std::chrono_literals;

namespace {

using host_times = answer_times<peer_id, adaptive_deadline>;
using stage_times = answer_times<int, mean_deadline>;

host_times at_most_5s() {
  return host_times(adaptive_deadline(500ms, 5s));
}

} // namespace

TEST_CASE("an answer is awaited as long as earlier ones of the same host allow") {
  auto times = at_most_5s();
  CHECK(times.deadline(1) == 5s);
  // A mean of 300 ms, and a deviation of half as much.
  times.answered(1, 300ms);
  CHECK(times.deadline(1) == 900ms);
  for (int i = 0; i < 100; ++i) times.answered(1, 300ms);
  // A steady host's deadline is the shortest.
  CHECK(times.deadline(1) == 500ms);
  // The deadline of a slow host is its own, and the longest one is never exceeded.
  times.answered(2, 4s);
  CHECK(times.deadline(2) == 5s);
  CHECK(times.deadline(1) == 500ms);
}

TEST_CASE("a host without earlier answers has the deadline of all hosts together") {
  auto times = at_most_5s();
  for (int i = 0; i < 100; ++i) {
    times.answered(1, 100ms);
    times.answered(2, 500ms);
  }
  // A mean of 300 ms, and a deviation of 200 ms.
  CHECK(to_seconds(times.deadline(3)) == doctest::Approx(1.1).epsilon(0.1));
  CHECK(times.deadline(2) < 600ms);
  times.forget(2);
  CHECK(times.deadline(2) == times.deadline(3));
}

TEST_CASE("a stage has five times its mean where that is above the limit") {
  stage_times times(mean_deadline(30s));
  CHECK(times.deadline(0) == 30s);
  for (int i = 0; i < 100; ++i) times.answered(0, 2s);
  CHECK(times.deadline(0) == 30s);
  CHECK(times.deadline(1) == 30s);
  times.answered(1, 20s);
  CHECK(times.deadline(1) == 100s);
  times.answered(1, 30s); // a tenth of the weight
  CHECK(times.deadline(1) == 105s);
  CHECK(times.deadline(0) == 30s);
}

TEST_CASE("a stage without earlier answers has the deadline of all stages together") {
  stage_times times(mean_deadline(30s));
  times.answered(0, 20s);
  CHECK(times.deadline(1) == 100s);
  times.answered(1, 1s);
  CHECK(times.deadline(1) == 30s);
}

TEST_CASE("hosts beyond the most that are kept share a deadline") {
  auto times = at_most_5s();
  for (peer_id host = 1; host <= host_times::most_keys; ++host) times.answered(host, 1s);
  times.answered(99'999, 10ms);
  CHECK(times.deadline(99'999) == times.deadline(99'998));
}
