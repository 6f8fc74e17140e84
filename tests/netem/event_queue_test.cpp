#include "kernels/base/rng.hpp"
#include "netem/event_queue.hpp"

#include <doctest/doctest.h>

#include <map>
#include <memory>

using namespace shoal;
using namespace shoal::netem;

namespace {

event at(
    std::int64_t when, std::function<void()> action = [] {}) {
  event out;
  out.when = duration{when};
  out.action = std::move(action);
  return out;
}

event owned(std::int64_t when, caf::actor_id owner) {
  auto out = at(when);
  out.owner = owner;
  return out;
}

} // namespace

TEST_CASE("events happen by time and then in the order in which they were pushed") {
  event_queue queue;
  std::vector<int> seen;
  for (int i = 0; i < 100; ++i)
    queue.push(at(i % 3, [&seen, i] { seen.push_back((i % 3) * 100 + i); }));
  duration last{};
  while (!queue.empty()) {
    CHECK(queue.next_time() >= last);
    last = queue.next_time();
    queue.pop().action();
  }
  REQUIRE(seen.size() == 100);
  for (std::size_t i = 1; i < seen.size(); ++i) CHECK(seen[i - 1] < seen[i]);
}

TEST_CASE("a cancelled event does not happen and does not move the time") {
  event_queue queue;
  auto first = queue.push(at(1));
  queue.push(at(5));
  auto last = queue.push(at(9));
  CHECK(queue.cancel(first));
  CHECK_FALSE(queue.cancel(first));
  CHECK(queue.next_time() == duration{5});
  queue.pop();
  CHECK(queue.cancel(last));
  CHECK(queue.empty());
}

TEST_CASE("the handle of a past event cancels nothing even when its slot is reused") {
  event_queue queue;
  auto old = queue.push(at(1));
  queue.pop();
  auto next = queue.push(at(2));
  CHECK(next != old);
  CHECK_FALSE(queue.cancel(old));
  CHECK_FALSE(queue.cancel(0));
  CHECK(queue.size() == 1);
}

TEST_CASE("a queue agrees with an ordered map under random pushes and cancels and pops") {
  auto draws = stream(7, "event_queue_test");
  event_queue queue;
  std::map<std::pair<std::int64_t, int>, event_handle> reference;
  int popped = -1;
  std::int64_t now = 0;
  for (int i = 0; i < 20000; ++i) {
    auto what = draws.below(10);
    if (what < 5 || reference.empty()) {
      auto when = now + static_cast<std::int64_t>(draws.below(50));
      auto event = owned(when, 1 + draws.below(5));
      event.action = [&popped, i] { popped = i; };
      reference[{when, i}] = queue.push(std::move(event));
    } else if (what < 8) {
      auto which = reference.begin();
      std::advance(which, draws.below(reference.size()));
      CHECK(queue.cancel(which->second));
      reference.erase(which);
    } else {
      queue.pop().action();
      CHECK(popped == reference.begin()->first.second);
      now = reference.begin()->first.first;
      reference.erase(reference.begin());
    }
    REQUIRE(queue.size() == reference.size());
  }
}

TEST_CASE("arrivals and events of one time come in the order in which they were pushed") {
  event_queue queue;
  for (std::uint32_t i = 0; i < 10; ++i) {
    queue.push_arrival(duration{5}, i);
    queue.push(owned(5, 100 + i));
  }
  queue.push(at(3));
  CHECK_FALSE(queue.pop_arrival());
  CHECK(queue.pop().when == duration{3});
  for (std::uint32_t i = 0; i < 10; ++i) {
    CHECK(queue.pop_arrival() == i);
    CHECK_FALSE(queue.pop_arrival());
    CHECK(queue.pop().owner == 100 + i);
  }
  CHECK(queue.empty());
}

TEST_CASE("an event before the last popped time comes behind the events of that time") {
  event_queue queue;
  queue.push_arrival(duration{5}, 1);
  queue.push_arrival(duration{5}, 2);
  CHECK(queue.pop_arrival() == 1);
  queue.push_arrival(duration{4}, 3);
  CHECK(queue.pop_arrival() == 2);
  CHECK(queue.next_time() == duration{5});
  CHECK(queue.pop_arrival() == 3);
}

TEST_CASE("the events of one owner are taken together and the others stay") {
  event_queue queue;
  for (int i = 0; i < 30; ++i) queue.push(owned(i, 1 + i % 3));
  auto gone = queue.push(owned(99, 2));
  queue.cancel(gone);
  CHECK(queue.pop().owner == 1);
  CHECK(queue.take_owned(2).size() == 10);
  CHECK(queue.take_owned(2).empty());
  CHECK(queue.take_owned(77).empty());
  CHECK(queue.size() == 19);
  while (!queue.empty()) CHECK(queue.pop().owner != 2);
}

TEST_CASE("handles from before take_all cancel no later event") {
  event_queue queue;
  auto old = queue.push(at(1));
  queue.push(at(2));
  CHECK(queue.take_all().size() == 2);
  CHECK(queue.empty());
  queue.push(at(3));
  queue.push(at(4));
  CHECK_FALSE(queue.cancel(old));
  CHECK(queue.next_time() == duration{3});
}
