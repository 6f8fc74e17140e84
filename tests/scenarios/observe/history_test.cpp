#include "scenarios/observe/history.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <string>

using namespace shoal;
using namespace shoal::scenarios;
using netem::delivered_event;
using netem::event_kind;

namespace {

host_identity who(netem::host_index host) {
  return {"home-" + std::to_string(host % 4), host % 4, host / 4};
}

delivered_event some_event() {
  return {event_kind::message, duration(5), duration(2), {1, 2}, {6, 3}, "part_chunk", 1000};
}

digest hash_of_changed(const std::function<void(delivered_event&)>& change) {
  host_names names(who);
  history_hash hash(names);
  delivered_event event = some_event();
  change(event);
  hash.add(event);
  return hash.current();
}

} // namespace

TEST_CASE("every field of an event but its sending time changes the hash of history") {
  const digest plain = hash_of_changed([](delivered_event&) {});
  CHECK(plain == hash_of_changed([](delivered_event&) {}));
  CHECK(plain == hash_of_changed([](delivered_event& e) { e.sent = duration(1); }));
  CHECK(plain != hash_of_changed([](delivered_event& e) { e.time = duration(6); }));
  CHECK(plain != hash_of_changed([](delivered_event& e) { e.kind = event_kind::timer; }));
  CHECK(plain != hash_of_changed([](delivered_event& e) { e.from.host = 2; }));
  CHECK(plain !=
        hash_of_changed([](delivered_event& e) { e.from.host = 5; })); // the next incarnation
  CHECK(plain != hash_of_changed([](delivered_event& e) { e.from.ordinal = 1; }));
  CHECK(plain != hash_of_changed([](delivered_event& e) { e.to.host = netem::no_host; }));
  CHECK(plain != hash_of_changed([](delivered_event& e) { e.to.ordinal = 0; }));
  CHECK(plain != hash_of_changed([](delivered_event& e) { e.type = "part_chunl"; }));
  CHECK(plain != hash_of_changed([](delivered_event& e) { e.wire_bytes = 1001; }));
}

TEST_CASE("two events in the other order are another history") {
  host_names names(who);
  history_hash forth(names), back(names);
  delivered_event a = some_event(), b = some_event();
  b.from.host = 2;
  forth.add(a), forth.add(b);
  back.add(b), back.add(a);
  CHECK(forth.current() != back.current());
  CHECK(forth.events() == 2);
}

TEST_CASE("looking at the hash in between changes nothing, whatever the buffer holds") {
  host_names names(who);
  history_hash once(names), often(names);
  const std::string long_name(9000, 'x'); // longer than the buffer
  for (int i = 0; i < 500; ++i) {
    delivered_event event = some_event();
    event.time = duration(i);
    if (i % 100 == 3) event.type = long_name.c_str();
    once.add(event);
    often.add(event);
    often.current();
  }
  CHECK(once.current() == often.current());
}

TEST_CASE("hosts are asked for once and named with incarnation and ordinal") {
  int asked = 0;
  host_names names([&](netem::host_index host) {
    ++asked;
    return who(host);
  });
  CHECK(names.actor({6, 3}) == "home-2#1/3");
  CHECK(names.host(6) == "home-2#1");
  CHECK(names.actor({netem::no_host, 0}) == "-");
  CHECK(asked == 1);
}

TEST_CASE("a million events are hashed, and the speed is shown") {
  host_names names(who);
  history_hash hash(names);
  const delivered_event event = some_event();
  constexpr int count = 1'000'000;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) hash.add(event);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  MESSAGE("million events a second: ", count / seconds / 1e6);
  CHECK(hash.events() == count);
  CHECK(!hash.current().is_zero());
}
