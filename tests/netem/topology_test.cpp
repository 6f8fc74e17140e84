#include "netem/topology.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace shoal;
using namespace shoal::netem;
using namespace std::chrono_literals;

namespace {

/// A topology that numbers its links itself.
struct numbered_topology : topology {
  std::uint32_t links = 0;

  site_index site(std::string name, site_index inside = no_site) {
    const link_id up{links++}, down{links++};
    return add_site(std::move(name), up, down, inside);
  }
  machine_index machine(const machine_options& what) {
    const link_id up{links++}, down{links++};
    return add_machine(what, up, down);
  }
};

machine_options named(std::string name, site_index site = no_site) {
  machine_options out;
  out.name = std::move(name);
  out.site = site;
  return out;
}

std::vector<std::string> names(const topology& in, const topology::route& route) {
  std::vector<std::string> out;
  for (const auto link : route.links()) out.push_back(in.name_of(link));
  return out;
}

topology::location at(const topology& in, machine_index machine) {
  return {machine, in[machine].place};
}

} // namespace

TEST_CASE("a route goes up to the innermost common site and down to the receiver") {
  numbered_topology t;
  t.add_region("here");
  const auto city = t.site("city"), home = t.site("home", city), office = t.site("office", city);
  const auto a = t.machine(named("a", home)), b = t.machine(named("b", office)),
             c = t.machine(named("c", home)), d = t.machine(named("d"));
  using strings = std::vector<std::string>;
  CHECK(names(t, t.route_between(a, c)) == strings{"uplink of a", "downlink of c"});
  CHECK(names(t, t.route_between(a, b)) ==
        strings{"uplink of a", "uplink of home", "downlink of office", "downlink of b"});
  CHECK(names(t, t.route_between(a, d)) ==
        strings{"uplink of a", "uplink of home", "uplink of city", "downlink of d"});
  CHECK(names(t, t.route_between(d, a)) ==
        strings{"uplink of d", "downlink of city", "downlink of home", "downlink of a"});
}

TEST_CASE("a route through a relay has the links of both ways") {
  numbered_topology t;
  t.add_region("here");
  const auto a = t.machine(named("a")), relay = t.machine(named("r")), b = t.machine(named("b"));
  CHECK(names(t, t.route_through(a, relay, b)) ==
        std::vector<std::string>{"uplink of a", "downlink of r", "uplink of r", "downlink of b"});
}

TEST_CASE(
    "the longest route between nested sites through a relay in a third one has sixteen links") {
  numbered_topology t;
  t.add_region("here");
  const auto deep = [&](const std::string& name) {
    return t.machine(named(name, t.site(name + "3", t.site(name + "2", t.site(name + "1")))));
  };
  const auto a = deep("a"), relay = deep("r"), b = deep("b");
  const auto route = t.route_through(a, relay, b);
  REQUIRE(route.links().size() == 16);
  CHECK(t.name_of(route.links()[7]) == "downlink of r");
  CHECK(t.name_of(route.links()[15]) == "downlink of b");
}

TEST_CASE("links of machines and of sites keep their owners in any order of building") {
  numbered_topology t;
  t.add_region("here");
  t.machine(named("first"));
  t.site("attic");
  t.machine(named("second"));
  CHECK(t.name_of(link_id{0}) == "uplink of first");
  CHECK(t.name_of(link_id{3}) == "downlink of attic");
  CHECK(t.name_of(link_id{4}) == "uplink of second");
}

TEST_CASE("machines of one region with equal lines share a place and others do not") {
  numbered_topology t;
  t.add_region("here");
  t.add_region("there");
  auto slow = named("slow");
  slow.line.delay = 10ms;
  auto far = named("far");
  far.region = 1;
  const auto a = t.machine(named("a")), b = t.machine(named("b")), c = t.machine(slow),
             d = t.machine(far);
  CHECK(t[a].place == t[b].place);
  CHECK(t[a].place != t[c].place);
  CHECK(t[a].place != t[d].place);
}

TEST_CASE("a place without machines is reused and a changed line changes the paths") {
  numbered_topology t;
  t.add_region("here");
  t.set_path(0, 0, {.delay = 50ms});
  const auto a = t.machine(named("a")), b = t.machine(named("b"));
  const path_quality slow{.delay = 20ms}, slower{.delay = 40ms};
  const auto first = t.use_line(a, slow, {});
  CHECK(first != t[b].place);
  CHECK(t.delay(at(t, a), at(t, b)) == 70ms);
  CHECK(t.delay(at(t, b), at(t, a)) == 50ms);
  CHECK(t.use_line(a, slower, {}) == first);
  CHECK(t.delay(at(t, a), at(t, b)) == 90ms);
  CHECK(t.use_line(a, {}, {}) == t[b].place);
}

TEST_CASE("a new path between regions holds for existing places") {
  numbered_topology t;
  t.add_region("here");
  t.add_region("there");
  auto far = named("far");
  far.region = 1;
  const auto a = t.machine(named("a")), b = t.machine(far);
  CHECK(t.delay(at(t, a), at(t, b)) == 0ms);
  t.set_path(0, 1, {.delay = 80ms});
  CHECK(t.delay(at(t, a), at(t, b)) == 80ms);
  CHECK(t.delay(at(t, b), at(t, a)) == 80ms);
  CHECK(t.delay(at(t, a), at(t, a)) == 0ms);
}

TEST_CASE("machines without coordinates keep the delay of their regions beside machines with "
          "coordinates") {
  numbered_topology t;
  t.add_region("here");
  t.set_path(0, 0, {.delay = 500ms});
  auto placed = named("placed"), other = named("other");
  placed.at = coordinates{0.03, 0, 0.005};
  other.at = coordinates{0, 0.04, 0.002};
  const auto before = t.machine(named("before")), a = t.machine(placed), b = t.machine(other),
             after = t.machine(named("after"));
  CHECK(t.delay(at(t, a), at(t, b)) == 57ms);
  CHECK(t.delay(at(t, a), at(t, before)) == 500ms);
  CHECK(t.delay(at(t, after), at(t, b)) == 500ms);
}

TEST_CASE("a name does not change once it is given") {
  numbered_topology t;
  t.add_region("here");
  const auto nameless = t.machine(named("")), known = t.machine(named("known"));
  t.set_name(nameless, "found");
  t.set_name(nameless, "again");
  t.set_name(known, "other");
  CHECK(t[nameless].name == "found");
  CHECK(t[known].name == "known");
}
