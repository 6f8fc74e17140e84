#include "netem/wire/dialler.hpp"
#include "netem/wire/host_link.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::netem::wire;
using namespace std::chrono_literals;

namespace {

using indices = std::vector<std::size_t>;
constexpr auto nobody_up = [](netem::host_index) { return false; };

} // namespace

TEST_CASE("the wait doubles from 200 ms up to two seconds") {
  CHECK(back_off_after(1) == 200ms);
  CHECK(back_off_after(2) == 400ms);
  CHECK(back_off_after(4) == 1600ms);
  CHECK(back_off_after(5) == 2s);
  CHECK(back_off_after(1'000'000) == 2s);
}

TEST_CASE("a process has ended when its address refuses twice in a row, and one refusal is enough "
          "from then on") {
  reconnect to;
  to.begin(10s);
  to.failed(true);
  CHECK_FALSE(to.has_ended(10s));
  to.failed(false); // a connection that was not answered in time says nothing
  to.failed(true);
  CHECK_FALSE(to.has_ended(10s));
  to.failed(true);
  CHECK(to.has_ended(10s));
  to.stop();
  to.begin(20s);
  CHECK(to.due(20s)); // the process may be there again
  to.failed(true);
  CHECK(to.has_ended(20s));
  to.linked();
  CHECK_FALSE(to.has_ended(20s));
  CHECK_FALSE(to.trying());
}

TEST_CASE(
    "a process has ended when two hosts told the address that refuses, unless a third one tells "
    "another address in time") {
  reconnect to;
  to.begin(10s);
  to.try_at(10s + 200ms);
  to.confirmed();
  CHECK_FALSE(to.has_ended(10s + 199ms));
  CHECK(to.has_ended(10s + 200ms));
  SUBCASE("another address") {
    to.told();
  }
  SUBCASE("another attempt") {
    to.stop();
    to.begin(20s);
  }
  CHECK_FALSE(to.has_ended(20s));
}

TEST_CASE("a host is dialled at once and then with back-off, and is given up after the limit") {
  reconnect to;
  to.begin(10s);
  CHECK(to.trying());
  CHECK(to.due(10s));
  to.attempted(10s);
  to.begin(10s + 1ms); // the attempts have begun already
  CHECK_FALSE(to.due(10s + 199ms));
  CHECK(to.due(10s + 200ms));
  to.attempted(10s + 200ms);
  CHECK_FALSE(to.due(10s + 599ms));
  to.try_at(10s + 300ms);
  CHECK(to.due(10s + 300ms));
  CHECK_FALSE(to.expired(15s, 5s));
  CHECK(to.expired(15s + 1ms, 5s));
  to.stop();
  to.begin(20s); // begins again
  CHECK(to.due(20s));
  to.attempted(20s);
  CHECK(to.due(20s + 200ms));
}

TEST_CASE("an address is dialled until a host answers there and again when the link is lost") {
  join_list all;
  all.add("10.0.0.5:7000");
  CHECK(all.due(1s, nobody_up) == indices{0});
  const auto link = std::make_shared<host_link>();
  auto to = all.begin(0, 1s, 5s);
  REQUIRE(to);
  CHECK(to->where == "10.0.0.5:7000");
  *to->slot = link;
  CHECK(all.due(100s, nobody_up).empty());
  CHECK_FALSE(all.begin(0, 1s, 5s));
  all.connected(*link, 4);
  CHECK(all.due(100s, [](netem::host_index host) { return host == 4; }).empty());
  CHECK(all.due(100s, nobody_up) == indices{0});
  CHECK(all.due(5s, nobody_up).empty()); // not before the time limit of the last attempt
  all.forget(4);
  CHECK(all.due(100s, [](netem::host_index host) { return host == 4; }) == indices{0});
}

TEST_CASE("an address that does not answer is dialled with back-off") {
  join_list all;
  all.add("a:1");
  const auto link = std::make_shared<host_link>();
  for (const duration wait : {200ms, 400ms, 800ms, 1600ms, 2000ms, 2000ms}) {
    *all.begin(0, 1s, 5s)->slot = link;
    CHECK_FALSE(all.lost(*link, refusal::none, 1s, 15s));
    CHECK(all.due(1s + wait - 1ms, nobody_up).empty());
    CHECK(all.due(1s + wait, nobody_up) == indices{0});
  }
}

TEST_CASE("a name that stays taken for longer than the limit is taken for good") {
  join_list all;
  all.add("a:1");
  const auto link = std::make_shared<host_link>();
  const auto refused_at = [&](duration when, refusal why) {
    *all.begin(0, when, 5s)->slot = link;
    return all.lost(*link, why, when, 15s);
  };
  CHECK_FALSE(refused_at(10s, refusal::name_taken));
  CHECK_FALSE(refused_at(25s, refusal::name_taken));
  CHECK(refused_at(26s, refusal::name_taken));
  CHECK_FALSE(refused_at(27s, refusal::banned));
  *all.begin(0, 28s, 5s)->slot = link;
  all.connected(*link, 4); // the host accepted the link
  CHECK_FALSE(refused_at(40s, refusal::name_taken));
}

TEST_CASE("one host's refusal does not end the attempts to join through the others") {
  join_list all;
  all.add("a:1");
  all.add("b:1");
  const auto to_a = std::make_shared<host_link>(), to_b = std::make_shared<host_link>();
  const auto refused = [&](std::size_t entry, const std::shared_ptr<host_link>& link, refusal why) {
    *all.begin(entry, 1s, 5s)->slot = link;
    return all.lost(*link, why, 1s, 15s);
  };
  CHECK_FALSE(refused(0, to_a, refusal::revoked));
  CHECK_FALSE(refused(0, to_a, refusal::revoked));
  CHECK_FALSE(refused(1, to_b, refusal::none));      // no answer is no refusal
  CHECK_FALSE(refused(1, to_b, refusal::clock_off)); // another reason
  CHECK_FALSE(refused(1, to_b, refusal::banned));    // a reason that passes
  CHECK(refused(1, to_b, refusal::revoked));         // all say the same
  SUBCASE("unless a link was ever up") {
    all.linked();
    CHECK_FALSE(refused(0, to_a, refusal::revoked));
    CHECK_FALSE(refused(1, to_b, refusal::revoked));
  }
  SUBCASE("and a link that was dialled for another purpose does not count") {
    CHECK_FALSE(all.lost(host_link{}, refusal::revoked, 1s, 15s));
  }
}

TEST_CASE("a link that was not dialled changes nothing") {
  join_list all;
  all.add("a:1");
  const auto link = std::make_shared<host_link>();
  *all.begin(0, 1s, 5s)->slot = link;
  const host_link other;
  all.connected(other, 4);
  CHECK_FALSE(all.lost(other, refusal::name_taken, 1h, 15s));
  CHECK(all.due(1h, nobody_up).empty());
}
