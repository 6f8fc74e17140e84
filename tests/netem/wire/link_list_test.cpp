#include "netem/wire/link_list.hpp"
#include "tests/netem/wire/fake_pipe.hpp"

#include <doctest/doctest.h>

using namespace shoal::netem::wire;

namespace {

hello hello_of(const char* name, std::uint64_t link) {
  hello out;
  out.name = name;
  out.link = link;
  return out;
}

} // namespace

TEST_CASE("two incoming pipes become one link once both hellos have come in either order") {
  for (const int first : {0, 1}) {
    link_list all;
    const link_list::link_ptr halves[] = {fake_link({0}), fake_link({1})};
    for (const auto& each : halves) all.add(each);
    const auto bulk = halves[1]->pipes[1].through;
    CHECK(all.hello_came(halves[first], first, hello_of("lab-2", 5)) == nullptr);
    CHECK(all.hello_came(halves[1 - first], 1 - first, hello_of("lab-2", 5)) == halves[0]);
    CHECK(all.all().size() == 1);
    CHECK(halves[0]->pipes[1].through == bulk);
    CHECK(halves[0]->pipes[1].hello);
    CHECK(all.whole(halves[1]) == halves[0]);
  }
}

TEST_CASE("the pipes of one member that wait for a hello are counted by its key") {
  link_list all;
  const certified_member mallory{"mallory", std::string(32, 'm')},
      honest{"lab-2", std::string(32, 'h')};
  for (int i = 0; i < 5; ++i) {
    auto half = fake_link({0});
    half->certified = mallory;
    all.add(half);
  }
  all.all()[0]->up = true;
  all.all()[1]->dialled = true;
  CHECK(all.waiting_of(mallory) == 3);
  CHECK(all.waiting_of(honest) == 0);
  CHECK(all.waiting_of({}) == 0);
}

TEST_CASE("halves of one name and two keys do not become one link") {
  link_list all;
  const link_list::link_ptr halves[] = {fake_link({0}), fake_link({1})};
  halves[0]->certified = {"lab-2", std::string(32, 'a')};
  halves[1]->certified = {"lab-2", std::string(32, 'b')};
  for (const int i : {0, 1}) {
    all.add(halves[i]);
    CHECK(all.hello_came(halves[i], i, hello_of("lab-2", 5)) == nullptr);
  }
}

TEST_CASE(
    "after the pipes have joined a frame of the bulk pipe finds its state in the whole link") {
  link_list all;
  const auto control = fake_link({0}), bulk = fake_link({1});
  all.add(control);
  all.add(bulk);
  CHECK(all.hello_came(bulk, 1, hello_of("lab-2", 5)) == nullptr);
  CHECK(bulk->pipes[1].hello);
  CHECK(all.hello_came(control, 0, hello_of("lab-2", 5)) == control);
  // In the half link, a second hello would look like the first one.
  CHECK_FALSE(bulk->pipes[1].hello);
  CHECK(all.whole(bulk)->pipes[1].hello);
}

TEST_CASE("pipes of other links, names and certificates do not join") {
  link_list all;
  const auto control = fake_link({0});
  all.add(control);
  CHECK(all.hello_came(control, 0, hello_of("lab-2", 5)) == nullptr);
  const auto with = [&](const hello& theirs, int which, const char* certificate) {
    const auto other = fake_link({which});
    other->certified.name = certificate;
    all.add(other);
    return all.hello_came(other, which, theirs);
  };
  CHECK(with(hello_of("lab-2", 6), 1, "") == nullptr);
  CHECK(with(hello_of("lab-3", 5), 1, "") == nullptr);
  CHECK(with(hello_of("lab-2", 5), 1, "mallory") == nullptr);
  CHECK(with(hello_of("lab-2", 5), 0, "") == nullptr);
  CHECK(with(hello_of("lab-2", 5), 1, "") == control);
}

TEST_CASE("a closed link accepts no second pipe") {
  link_list all;
  const auto control = fake_link({0}), bulk = fake_link({1});
  all.add(control);
  all.add(bulk);
  CHECK(all.hello_came(bulk, 1, hello_of("lab-2", 5)) == nullptr);
  CHECK(all.close(control) == control);
  CHECK(all.hello_came(control, 0, hello_of("lab-2", 5)) == nullptr);
  CHECK(bulk->pipes[1].through != nullptr);
}

TEST_CASE("a relayed link has both pipes from the start and is whole with the second hello") {
  link_list all;
  const auto link = fake_link();
  link->relayed.emplace();
  all.add(link);
  CHECK(all.hello_came(link, 1, hello_of("lab-2", 5)) == nullptr);
  CHECK(all.hello_came(link, 0, hello_of("lab-2", 5)) == link);
}

TEST_CASE("closing either half closes the whole link once") {
  link_list all;
  const auto control = fake_link({0}), bulk = fake_link({1});
  all.add(control);
  all.add(bulk);
  all.hello_came(control, 0, hello_of("lab-2", 5));
  CHECK(all.hello_came(bulk, 1, hello_of("lab-2", 5)) == control);
  CHECK(all.close(bulk) == control);
  CHECK(all.close(control) == nullptr);
  CHECK(all.all().empty());
}

TEST_CASE("links are found by host and by state and by their relay") {
  link_list all;
  const auto relay = fake_link(), over = fake_link();
  node_key other;
  other.incarnation = 4;
  relay->host = 1;
  relay->up = true;
  over->relayed = other;
  over->relay = relay;
  over->token = 9;
  all.add(relay);
  all.add(over);
  CHECK(all.up() == std::vector{relay});
  CHECK(all.with(1) == std::vector{relay});
  CHECK(all.up_with(1) == relay);
  CHECK(all.up_with(2) == nullptr);
  CHECK(all.over_relay(relay) == std::vector{over});
  CHECK(all.over_relay(relay, other, 9) == over);
  CHECK(all.over_relay(relay, other, 8) == nullptr);
  CHECK(all.close_all().size() == 2);
  CHECK(over->closed);
}
