#include "actors/training/progress_publisher.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;
using namespace std::chrono_literals;

namespace {

const progress_timing timing{200ms, 5s, 15s};

progress at(std::uint64_t epoch, std::uint64_t samples) {
  progress out;
  out.epoch = epoch;
  out.samples = samples;
  return out;
}

} // namespace

TEST_CASE(
    "progress publisher: an unchanged record is published again after a third of its lifetime") {
  progress_publisher records(timing);
  CHECK(records.is_news(at(1, 8), 0s));
  CHECK_FALSE(records.is_news(at(1, 8), 4999ms));
  CHECK(records.is_news(at(1, 8), 5s));
  CHECK_FALSE(records.is_news(at(1, 8), 9s));
}

TEST_CASE("progress publisher: a changed record is published at once") {
  progress_publisher records(timing);
  CHECK(records.is_news(at(1, 8), 0s));
  CHECK(records.is_news(at(1, 16), 1ms));
  CHECK(records.is_news(at(2, 0), 2ms));
  CHECK_FALSE(records.is_news(at(2, 0), 3ms));
}

TEST_CASE("progress publisher: records out of turn keep min_refresh between them") {
  progress_publisher records(timing);
  REQUIRE(records.is_news(at(1, 8), 1s));
  CHECK_FALSE(records.may_announce(1199ms));
  CHECK(records.may_announce(1200ms));
  // A record without news does not count.
  REQUIRE_FALSE(records.is_news(at(1, 8), 1100ms));
  CHECK(records.may_announce(1200ms));
}

TEST_CASE("progress publisher: the next reading is due after half of the time to the next round, "
          "within bounds") {
  const progress_publisher records(timing);
  const auto wait = [&](double missing, double speed) {
    return records.next_refresh({false, {}, missing, speed, true});
  };
  CHECK(wait(40, 10) == 2s);
  CHECK(wait(1, 10) == 200ms);
  CHECK(wait(-30, 10) == 200ms);
  CHECK(wait(1000, 10) == 5s);
  CHECK(wait(40, 0) == 5s);
}

TEST_CASE(
    "progress publisher: before the first reading the next one is due after a second at most") {
  const progress_publisher records(timing);
  CHECK(records.next_refresh({false, {}, 0, 0, false}) == 1s);
  CHECK(records.next_refresh({false, {}, 8, 10, false}) == 400ms);
}

TEST_CASE(
    "progress publisher: a busy peer reads again after half of the time that it has been busy") {
  const progress_publisher records(timing);
  CHECK(records.next_refresh({true, 0s, 0, 0, true}) == 200ms);
  CHECK(records.next_refresh({true, 3s, 0, 0, true}) == 1500ms);
  CHECK(records.next_refresh({true, 60s, 0, 0, true}) == 5s);
}

TEST_CASE("progress publisher: only the latest plan is due, and an earlier time replaces it") {
  progress_publisher records(timing);
  const auto first = records.plan(5s, 0s);
  CHECK(records.is_due(first));
  CHECK(records.sooner(1s, 3999ms));
  CHECK_FALSE(records.sooner(1s, 4s));
  const auto second = records.plan(1s, 3s);
  CHECK_FALSE(records.is_due(first));
  CHECK(records.is_due(second));
}
