#include "netem/wire/pacer.hpp"
#include "tests/netem/wire/fake_pipe.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::netem::wire;
using namespace std::chrono_literals;

namespace {

/// A frame of 1000 bytes.
frame piece() {
  return {std::vector<char>(1000, 'x'), {}};
}
std::size_t sent_to(const host_link& link) {
  return pipe_of(link, 1).sent.size();
}

} // namespace

TEST_CASE("small messages do not wait, and neither does bulk without an uplink rate") {
  pacer fast(0), slow(1e6);
  const auto link = fake_link();
  fast.put(*link, true, piece(), 1s);
  slow.put(*link, false, piece(), 1s);
  CHECK(sent_to(*link) == 1);
  CHECK(pipe_of(*link, 0).sent.size() == 1);
  std::vector links{link};
  CHECK_FALSE(fast.pump(links, 1s));
}

TEST_CASE("bulk leaves at 94 percent of the line") {
  pacer line(8000 / paced_share); // a piece takes a second
  std::vector links{fake_link()};
  const auto link = links[0];
  for (int i = 0; i < 3; ++i) line.put(*link, true, piece(), 10s);
  CHECK(link->waiting_bytes == 3000);
  // The pacer may be five milliseconds ahead, since timers can be late.
  const auto next = line.pump(links, 10s);
  REQUIRE(next);
  CHECK(to_seconds(*next) == doctest::Approx(10.995));
  CHECK(sent_to(*link) == 1);
  CHECK_FALSE(line.pump(links, 11s)); // a turn is planned
  CHECK(sent_to(*link) == 1);
  line.turn_came();
  const auto last = line.pump(links, 11s);
  REQUIRE(last);
  CHECK(to_seconds(*last) == doctest::Approx(11.995));
  line.turn_came();
  CHECK(line.pump(links, 12s));
  CHECK(sent_to(*link) == 3);
  CHECK(link->waiting_bytes == 0);
  line.turn_came();
  CHECK_FALSE(line.pump(links, 13s)); // no frame waits
}

TEST_CASE("links take turns") {
  pacer line(8000 / paced_share);
  std::vector links{fake_link(), fake_link(), fake_link()};
  const auto all = links;
  for (const auto& each : all)
    for (int i = 0; i < 4; ++i) line.put(*each, true, piece(), 10s);
  for (std::size_t turn = 1; turn <= 6; ++turn) {
    CHECK(line.pump(links, duration(9s) + turn * 1s));
    line.turn_came();
    std::size_t sum = 0;
    for (const auto& each : all) {
      CHECK(sent_to(*each) <= (turn + 2) / 3);
      sum += sent_to(*each);
    }
    CHECK(sum == turn);
  }
}
