#include "actors/experts/answer_times.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;
using namespace std::chrono_literals;

TEST_CASE("an answer is awaited as long as earlier ones of the same host allow") {
  answer_times times(5s);
  CHECK(times.deadline(1) == 5s);
  // A mean of 300 ms, and a deviation of half as much.
  times.answered(1, 300ms);
  CHECK(times.deadline(1) == 900ms);
  for (int i = 0; i < 100; ++i) times.answered(1, 300ms);
  // A steady host's deadline is a tenth of the longest at least.
  CHECK(times.deadline(1) == 500ms);
  // The deadline of a slow host is its own, and the longest one is never exceeded.
  times.answered(2, 4s);
  CHECK(times.deadline(2) == 5s);
  CHECK(times.deadline(1) == 500ms);
}

TEST_CASE("a host without earlier answers has the deadline of all hosts together") {
  answer_times times(5s);
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
