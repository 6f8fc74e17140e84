#include "netem/failure_detector.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::netem;
using namespace std::chrono_literals;

namespace {

cut from_one(machine_index machine) {
  return cut::isolating({machine}, traffic_direction::from);
}

} // namespace

TEST_CASE("a pair is blocked as long as any of its cuts is in force") {
  failure_detector d(5s);
  CHECK_FALSE(d.any_cut());
  const auto first = d.add_cut(from_one(1), 0s),
             second = d.add_cut(cut::isolating({1}, traffic_direction::both), 0s);
  CHECK(d.blocked(1, 2));
  CHECK(d.blocked(2, 1));
  d.remove_cut(second);
  CHECK(d.blocked(1, 2));
  CHECK_FALSE(d.blocked(2, 1));
  d.remove_cut(first);
  CHECK_FALSE(d.any_cut());
}

TEST_CASE(
    "two machines are cut off when one cut in either direction has lasted for the detection time") {
  failure_detector d(5s);
  const auto number = d.add_cut(from_one(1), 10s);
  CHECK_FALSE(d.cut_off(2, 1, 15s - 1ns));
  CHECK(d.cut_off(2, 1, 15s));
  CHECK(d.cut_off(1, 2, 15s));
  CHECK_FALSE(d.cut_off(2, 3, 15s));
  // A second cut does not inherit the time of the first one.
  d.add_cut(from_one(1), 16s);
  d.remove_cut(number);
  CHECK_FALSE(d.cut_off(1, 2, 20s));
  CHECK(d.cut_off(1, 2, 21s));
}

TEST_CASE("a blocked pair begins once and only its own number gives it up") {
  failure_detector d(5s);
  const auto pair = pair_of(1, 2);
  auto begun = d.blocked_pair_of(pair, no_host, 3s);
  CHECK(begun.fresh);
  begun.what.small.push_back(7);
  const auto number = begun.what.number;
  const auto again = d.blocked_pair_of(pair, no_host, 4s);
  CHECK_FALSE(again.fresh);
  CHECK(again.what.since == 3s);
  CHECK_FALSE(d.give_up(pair, number + 1));
  CHECK_FALSE(d.give_up(pair_of(2, 1), number));
  const auto taken = d.give_up(pair, number);
  REQUIRE(taken);
  CHECK(taken->small == std::vector<std::uint32_t>{7});
  CHECK_FALSE(d.give_up(pair, number));
  CHECK(d.blocked_pair_of(pair, no_host, 9s).what.number != number);
}

TEST_CASE("open blocked pairs are taken in the order of their pairs and the others stay") {
  failure_detector d(5s);
  for (const auto pair : {pair_of(3, 1), pair_of(1, 2), pair_of(2, 1)})
    d.blocked_pair_of(pair, no_host, 0s);
  const auto open = [](std::uint64_t pair, const blocked_pair&) { return sender_of(pair) != 2; };
  std::vector<std::uint64_t> taken;
  std::optional<std::uint64_t> last;
  while (auto found = d.take_open(last, open)) taken.push_back(*(last = found->first));
  CHECK(taken == std::vector<std::uint64_t>{pair_of(1, 2), pair_of(3, 1)});
  CHECK_FALSE(d.blocked_pair_of(pair_of(2, 1), no_host, 1s).fresh);
}

TEST_CASE("the blocked pairs of a dead host are those to it and those from it") {
  failure_detector d(5s);
  for (const auto pair : {pair_of(1, 2), pair_of(2, 3), pair_of(3, 1)})
    d.blocked_pair_of(pair, no_host, 0s);
  CHECK(d.blocked_pairs_of(2).size() == 2);
  CHECK(d.blocked_pairs_of(2).empty());
  CHECK_FALSE(d.blocked_pair_of(pair_of(3, 1), no_host, 1s).fresh);
}

TEST_CASE("pauses of a host add up and one that lasts for the detection time is silence") {
  failure_detector d(5s);
  CHECK_FALSE(d.paused(9));
  CHECK(d.paused_time(9, 100s) == 0s);
  d.pause(2, 10s);
  CHECK(d.paused(2));
  CHECK_FALSE(d.still(2, 14s));
  CHECK(d.still(2, 15s));
  CHECK(d.paused_time(2, 16s) == 6s);
  d.resume(2, 16s);
  CHECK_FALSE(d.still(2, 30s));
  d.pause(2, 20s);
  CHECK(d.paused_time(2, 21s) == 7s);
  CHECK_FALSE(d.still(2, 21s));
}

TEST_CASE("actions that wait for the end of a pause run in order and a death drops them") {
  failure_detector d(5s);
  std::vector<int> ran;
  d.pause(1, 0s);
  d.when_resumed(1, [&] { ran.push_back(1); });
  d.when_resumed(1, [&] { ran.push_back(2); });
  for (const auto& action : d.resume(1, 1s)) action();
  CHECK(ran == std::vector<int>{1, 2});
  CHECK_FALSE(d.end_pause_by_death(1));
  d.pause(1, 2s);
  d.when_resumed(1, [&] { ran.push_back(3); });
  const auto dropped = d.end_pause_by_death(1);
  REQUIRE(dropped);
  CHECK(dropped->size() == 1);
  CHECK_FALSE(d.paused(1));
  CHECK(d.paused_time(1, 9s) == 1s); // a pause that ends by death does not count
}

TEST_CASE("machines of which one refuses the other are cut off for good, and reach everyone else") {
  failure_detector d(5s);
  CHECK(d.refuse(3, 1, 10s));
  CHECK_FALSE(d.refuse(1, 3, 12s)); // known
  CHECK(d.any_cut());
  CHECK((d.blocked(1, 3) && d.blocked(3, 1)));
  CHECK_FALSE((d.blocked(1, 2) || d.blocked(3, 2)));
  CHECK_FALSE(d.cut_off(1, 3, 15s - 1ns));
  CHECK((d.cut_off(1, 3, 15s) && d.cut_off(3, 1, 15s)));
  d.remove_cut(d.add_cut(cut::isolating({1}, traffic_direction::both), 20s));
  CHECK(d.blocked(1, 3));
}
