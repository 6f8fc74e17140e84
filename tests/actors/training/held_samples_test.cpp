#include "actors/training/held_samples.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t bytes = 4;
using ranges = std::vector<sample_range>;

held_samples with_ready(std::uint64_t first, std::uint32_t count) {
  held_samples out;
  out.add_ready({first, count}, payload::size_only(bytes * count), bytes);
  return out;
}

/// Ten samples from 0 on. The first `count` of them are computed.
held_samples with_computed(std::uint64_t count) {
  auto out = with_ready(0, 10);
  out.start(out.take(count, bytes, 1s));
  const auto job = out.end_job();
  out.add_computed(job->ranges(), job->samples);
  return out;
}

} // namespace

TEST_CASE("held samples: a job takes ready samples in order, and cuts a block that is too large") {
  auto held = with_ready(0, 3);
  held.add_ready({10, 4}, payload::size_only(bytes * 4), bytes);
  CHECK(held.ready() == 7);
  auto job = held.take(5, bytes, 2s);
  CHECK(job.samples == 5);
  CHECK(job.started == 2s);
  CHECK(job.ranges() == ranges{{0, 3}, {10, 2}});
  CHECK(job.blocks[1].data.size() == bytes * 2);
  CHECK(held.ready() == 2);
  CHECK(held.take(5, bytes, 2s).ranges() == ranges{{12, 2}});
  CHECK(held.none_ready());
}

TEST_CASE("held samples: a sample that is leased twice is held once") {
  auto held = with_computed(4); // computed: 0 to 3, ready: 4 to 9
  held.begin_round();
  held.start(held.take(2, bytes, 1s));                            // running: 4 and 5
  held.add_ready({2, 12}, payload::size_only(bytes * 12), bytes); // new: 10 to 13
  CHECK(held.ready() == 8);
  CHECK(held.take_ready() == ranges{{6, 8}});
}

TEST_CASE("held samples: a running job is promised until the peer leaves its state") {
  auto held = with_computed(4);
  held.start(held.take(3, bytes, 1s));
  CHECK(held.promised() == 7);
  CHECK(held.give_up() == ranges{{0, 4}});
  CHECK(held.promised() == 0);
  REQUIRE(held.running());
  CHECK(held.running()->discard);
  CHECK(held.end_job()->ranges() == ranges{{4, 3}});
  CHECK_FALSE(held.end_job());
}

TEST_CASE(
    "held samples: a failed round keeps its samples, before those that were computed meanwhile") {
  auto held = with_computed(4);
  held.begin_round();
  CHECK(held.none_computed());
  CHECK(held.in_round() == ranges{{0, 4}});
  held.add_computed({{4, 2}}, 2);
  held.retry_round();
  CHECK(held.in_round().empty());
  CHECK(held.counted() == 6);
  CHECK(held.give_up() == ranges{{0, 6}});
}

TEST_CASE("held samples: a successful round takes its samples, and those computed meanwhile still "
          "count") {
  auto held = with_computed(4);
  held.begin_round();
  held.add_computed({{4, 2}}, 2);
  held.end_round();
  held.uncount(4);
  CHECK(held.counted() == 2);
  held.uncount(100);
  CHECK(held.counted() == 0);
  CHECK(held.give_up() == ranges{{4, 2}});
}

TEST_CASE("held samples: the leases of samples in all phases are renewed") {
  auto held = with_computed(2);
  held.begin_round();
  held.add_computed({{20, 1}}, 1);
  held.start(held.take(3, bytes, 1s));
  CHECK(held.all() == ranges{{0, 2}, {20, 1}, {2, 8}});
}

TEST_CASE("held samples: a lost lease takes whole ready blocks, and computed samples one by one") {
  auto held = with_computed(6); // ready: 6 to 9
  held.begin_round();
  held.add_computed({{30, 4}}, 4);
  held.drop_ready({{9, 1}});
  CHECK(held.none_ready());
  CHECK(held.drop_computed({{4, 4}, {31, 1}}) == ranges{{31, 1}, {4, 2}});
  CHECK(held.in_round() == ranges{{0, 4}});
  CHECK(held.all() == ranges{{0, 4}, {30, 1}, {32, 2}});
}

TEST_CASE("held samples: a sample that is lost and leased again is back where it was") {
  auto held = with_computed(6); // ready: 6 to 9
  held.begin_round();
  held.add_computed({{30, 4}}, 4);
  CHECK(held.lose_computed({{4, 4}, {31, 1}}) == ranges{{31, 1}, {4, 2}});
  CHECK(held.in_round() == ranges{{0, 4}});
  const auto again = [&](std::uint64_t first, std::uint32_t count) {
    held.add_ready({first, count}, payload::size_only(bytes * count), bytes);
    return held.ready();
  };
  SUBCASE("during the round") {
    CHECK(again(5, 1) == 4);
    CHECK(again(31, 1) == 4);
    CHECK(held.in_round() == ranges{{0, 4}, {5, 1}});
    CHECK(held.lose_computed({{5, 1}}) == ranges{{5, 1}});
    held.end_round();
    CHECK(held.give_up() == ranges{{30, 1}, {32, 2}, {31, 1}});
  }
  SUBCASE("after the round failed") {
    held.retry_round();
    CHECK(again(4, 1) == 4);
    CHECK(again(31, 1) == 4);
    CHECK(held.give_up() == ranges{{0, 4}, {30, 1}, {32, 2}, {4, 1}, {31, 1}});
  }
  SUBCASE("but not after the round") {
    held.end_round();
    CHECK(again(4, 1) == 5);
    CHECK(again(31, 1) == 6);
  }
  SUBCASE("nor after the parameters are given up") {
    held.give_up();
    CHECK(again(4, 1) == 5);
    CHECK(again(31, 1) == 6);
  }
}
