#include "netem/wire/host_link.hpp"
#include "tests/netem/wire/fake_pipe.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::netem::wire;
using namespace std::chrono_literals;

namespace {

std::uint64_t stamp_of(const frame& ping) {
  frame_reader in(bytes_of(ping));
  CHECK(in.get<std::uint8_t>() == static_cast<std::uint8_t>(frame_kind::ping));
  return in.get<std::uint64_t>();
}

} // namespace

TEST_CASE("reading goes on at the end of the second in which the last allowed frame came") {
  frame_rate rate;
  CHECK_FALSE(rate.count(10s, 3));
  CHECK_FALSE(rate.count(10s + 1ms, 3));
  CHECK(rate.count(10s + 2ms, 3) == duration(11s));
  CHECK_FALSE(rate.count(11s, 3));
}

TEST_CASE("frames that are spread over seconds are not held back") {
  frame_rate rate;
  for (int i = 0; i < 100; ++i) CHECK_FALSE(rate.count(1s + i * 500ms, 3));
}

TEST_CASE("the round trip is measured every five seconds and smoothed") {
  const auto link = fake_link();
  link->measure(10s);
  link->measure(14s);
  REQUIRE(pipe_of(*link, 0).sent.size() == 1);
  link->pong_came(stamp_of(pipe_of(*link, 0).sent[0]), 10s + 80ms);
  CHECK(link->round_trip == 80ms);
  link->measure(15s);
  REQUIRE(pipe_of(*link, 0).sent.size() == 2);
  link->pong_came(stamp_of(pipe_of(*link, 0).sent[1]), 15s + 160ms);
  CHECK(link->round_trip == 90ms); // (7 * 80 + 160) / 8
  link->pong_came(12345, 16s);
  CHECK(link->round_trip == 90ms);
}

TEST_CASE("rates are those of the last minute") {
  const auto link = fake_link();
  link->since = 10s;
  link->sent = 1000;
  CHECK(link->rates(20s).sends == doctest::Approx(800));
  // the rate is taken over at least a second
  CHECK(link->rates(10s).sends == doctest::Approx(8000));
  for (int i = 0; i <= 24; ++i) {
    link->measure(duration(20s) + i * 5s);
    link->sent += 5000;
    link->received += 500;
  }
  CHECK(link->rates(140s).sends == doctest::Approx(8 * 65000 / 60.0));
  CHECK(link->rates(140s).receives == doctest::Approx(8 * 6500 / 60.0));
}

TEST_CASE("an idle pipe is pinged after a quarter of the limit and a silent one is given up after "
          "all of it") {
  const auto link = fake_link();
  for (auto& direction : link->pipes) direction.heard = 100s;
  for (auto& sent : link->last_sent) sent = 100s;
  CHECK_FALSE(link->keep_alive(100s + 900ms, 4s, false));
  CHECK(pipe_of(*link, 0).take_kinds().empty());
  CHECK_FALSE(link->keep_alive(101s, 4s, false));
  for (const int i : {0, 1}) CHECK(pipe_of(*link, i).take_kinds() == std::vector{frame_kind::ping});
  CHECK_FALSE(link->keep_alive(104s, 4s, false));
  link->pipes[1].heard = 104s;
  CHECK(link->keep_alive(104s + 1ms, 4s, false));
  SUBCASE("unless this host itself does not read the pipe") {
    pipe_of(*link, 0).held = true;
    CHECK_FALSE(link->keep_alive(104s + 1ms, 4s, false));
  }
  SUBCASE("unless this process stood still: then the other side gets half the limit more") {
    CHECK_FALSE(link->keep_alive(200s, 4s, true));
    CHECK_FALSE(link->keep_alive(202s, 4s, false));
    CHECK(link->keep_alive(202s + 1ms, 4s, false));
  }
}

TEST_CASE("incomplete messages count for their link and for all links until the link is gone") {
  const auto total = std::make_shared<std::atomic<std::uint64_t>>(0);
  constexpr std::uint64_t most = 3 * incomplete_bytes::most_of_link;
  {
    incomplete_bytes link;
    link.count_in(total);
    CHECK(link.changed(0, 1000, most));
    CHECK(link.changed(1000, 5000, most));
    CHECK(*total == 5000);
    CHECK(link.changed(5000, 0, most)); // the message is complete
    CHECK(*total == 0);
    // One message of the largest size and a small one on the other pipe are fine, and two are not.
    CHECK(link.changed(0, max_message_bytes, most));
    CHECK(link.changed(0, std::size_t{8} << 20, most));
    CHECK_FALSE(link.changed(std::size_t{8} << 20, (std::size_t{8} << 20) + 1, most));
    CHECK(*total == incomplete_bytes::most_of_link + 1);
  }
  CHECK(*total == 0);
  std::vector<std::unique_ptr<incomplete_bytes>> links;
  for (int i = 0; i < 4; ++i) {
    links.push_back(std::make_unique<incomplete_bytes>());
    links.back()->count_in(total);
    CHECK(links.back()->changed(0, incomplete_bytes::most_of_link, most) == (i < 3));
  }
}
