#include "actors/dht/request_tracker.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

class silent : public caf::event_based_actor {
public:
  silent(caf::actor_config& config, host&) : caf::event_based_actor(config) {}
  caf::behavior make_behavior() override {
    return {[](const tick&) {}};
  }
};

struct fixture {
  mini_world world;
  mini_host& here = world.add_host("here");
  contact a{{0, 0, 1}, world.spawn<silent>(here)}, b{{0, 0, 2}, world.spawn<silent>(here)};
  request_tracker requests{500ms, 3s};

  bool open(std::uint64_t token, const contact& to, duration now) {
    request_tracker::request what;
    what.to = to;
    return requests.open(token, std::move(what), now);
  }
  caf::actor_addr address(const contact& of) {
    return caf::actor_cast<caf::actor_addr>(of.address);
  }
};

} // namespace

TEST_CASE("DHT requests: an address is monitored while a request to it is open") {
  fixture f;
  CHECK(f.open(1, f.a, 0s));
  CHECK_FALSE(f.open(2, f.a, 0s));
  CHECK(f.open(3, f.b, 0s));
  CHECK(f.requests.asks(f.a.id));
  CHECK_FALSE(f.requests.close(1, 1s, true).was_last);
  CHECK(f.requests.find(1) == nullptr);
  CHECK(f.requests.close(2, 1s, true).was_last);
  CHECK_FALSE(f.requests.asks(f.a.id));
  CHECK(f.requests.close(3, 1s, false).was_last);
  CHECK(f.open(4, f.a, 1s));
}

TEST_CASE("DHT requests: a lost address is no longer monitored, and its open requests are named") {
  fixture f;
  f.open(1, f.a, 0s);
  f.open(2, f.b, 0s);
  f.open(3, f.a, 0s);
  CHECK(f.requests.lost(f.address(f.a)) == std::vector<std::uint64_t>{1, 3});
  CHECK_FALSE(f.requests.close(1, 1s, false).was_last);
  CHECK_FALSE(f.requests.close(3, 1s, false).was_last);
  CHECK(f.requests.close(2, 1s, false).was_last);
}

TEST_CASE("DHT requests: a request becomes slow once, and fails after its timeout") {
  fixture f;
  f.open(1, f.a, 0s);
  f.open(2, f.b, 100ms);
  CHECK(f.requests.next_timer(100ms) == 400ms);
  // The timer is set already.
  CHECK_FALSE(f.requests.next_timer(100ms));
  CHECK_FALSE(f.requests.timer_fired(400ms));
  CHECK(f.requests.timer_fired(500ms));
  CHECK_FALSE(f.requests.timer_fired(500ms));
  CHECK(f.requests.next_slow(500ms) == 1u);
  CHECK_FALSE(f.requests.next_slow(500ms));
  CHECK_FALSE(f.requests.next_failed(500ms));
  // Until the second request is slow.
  CHECK(f.requests.next_timer(500ms) == 100ms);
  CHECK(f.requests.timer_fired(600ms));
  f.requests.close(2, 600ms, true);
  // The request was answered.
  CHECK_FALSE(f.requests.next_slow(600ms));
  CHECK(f.requests.next_timer(600ms) == 2400ms);
  CHECK_FALSE(f.requests.next_failed(2999ms));
  CHECK(f.requests.next_failed(3s) == 1u);
  f.requests.close(1, 3s, false);
  CHECK(f.requests.timer_fired(3s));
  // No request is open.
  CHECK_FALSE(f.requests.next_timer(3s));
}

TEST_CASE("DHT requests: a failed request was lost by itself if its node has answered another one "
          "since") {
  fixture f;
  f.open(1, f.a, 0s);
  f.open(2, f.a, 1s);
  f.open(3, f.a, 3s);
  CHECK_FALSE(f.requests.answered_since(1));
  f.requests.close(2, 2s, true);
  CHECK(f.requests.answered_since(1));
  CHECK_FALSE(f.requests.answered_since(3));
  CHECK_FALSE(f.requests.answered_since(99));
}

TEST_CASE("DHT requests: an overdue request can still be answered, until there are too many") {
  fixture f;
  f.open(1, f.a, 0s);
  f.requests.give_up(1, f.requests.close(1, 3s, false).what);
  REQUIRE(f.requests.overdue(1) != nullptr);
  CHECK(f.requests.overdue(1)->to.id == f.a.id);
  CHECK(f.requests.take_overdue(1).to.id == f.a.id);
  CHECK(f.requests.overdue(1) == nullptr);
  for (std::uint64_t token = 2; token < 3 + request_tracker::most_overdue; ++token)
    f.requests.give_up(token, {});
  CHECK(f.requests.overdue(2) == nullptr);
  CHECK(f.requests.overdue(3) != nullptr);
}
