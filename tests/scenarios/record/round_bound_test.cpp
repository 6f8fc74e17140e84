// scenarios/record/round_bound: the least time of a round by the rates of its lines.
#include "scenarios/record/round_bound.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

host_spec host(const char* name, double up, double down) {
  host_spec out;
  out.name = name;
  out.up.bits_per_second = up;
  out.down.bits_per_second = down;
  return out;
}

} // namespace

TEST_CASE("the bound of a round between equal lines is that of a butterfly all-reduce") {
  std::vector<host_spec> hosts;
  for (const char* name : {"a", "b", "c", "d"}) hosts.push_back(host(name, 8e6, 8e6));
  // Each host sends 3/4 of its megabyte, and its quarter of the mean to three others: 1.5 s.
  const auto bound = bandwidth_bound(hosts, {"a", "b", "c", "d"}, 6'000'000);
  REQUIRE(bound);
  CHECK(to_seconds(*bound) == doctest::Approx(1.5).epsilon(1e-6));
  // Two members send each other what the other one reduces, and get the mean back.
  CHECK(to_seconds(bandwidth_bound(hosts, {"a", "c"}, 2'000'000).value()) ==
        doctest::Approx(1.0).epsilon(1e-6));
}

TEST_CASE("a slow uplink reduces nothing and sets the bound of a round") {
  const std::vector<host_spec> hosts{host("slow", 1e6, 100e6), host("x", 100e6, 100e6),
                                     host("y", 100e6, 100e6)};
  // The slow host sends its whole megabyte at 1 Mbit/s.
  const auto bound = bandwidth_bound(hosts, {"slow", "x", "y"}, 4'000'000);
  REQUIRE(bound);
  CHECK(to_seconds(*bound) == doctest::Approx(8).epsilon(1e-6));
}

TEST_CASE("a round of unknown hosts or of one host has no bound") {
  const std::vector<host_spec> hosts{host("a", 1e6, 1e6)};
  CHECK_FALSE(bandwidth_bound(hosts, {"a", "nobody"}, 1000));
  CHECK_FALSE(bandwidth_bound(hosts, {"a"}, 1000));
}
