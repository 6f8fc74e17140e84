#include "actors/trust/standing.hpp"

#include <doctest/doctest.h>

using namespace shoal::actors;

namespace {

const member_id alice{1, 1}, bob{2, 2};
using members = std::set<member_id>;

} // namespace

TEST_CASE("standing: a member that misses two duties in 20 epochs sits out 10") {
  standing s;
  CHECK(!s.miss(alice, 5));
  CHECK(!s.miss(alice, 5)); // one cause
  CHECK(s.out(6) == members{});
  CHECK(!s.miss(bob, 6));
  CHECK(s.miss(alice, 24));
  CHECK(s.out(24) == members{alice});
  CHECK(s.out(34) == members{alice});
  CHECK(s.out(35) == members{});
  // Afterwards a new window begins.
  CHECK(!s.miss(alice, 36));
  CHECK(s.out(37) == members{});
}

TEST_CASE("standing: duties far apart count for nothing, and reports may come late") {
  standing s;
  CHECK(!s.miss(alice, 5));
  CHECK(!s.miss(alice, 25));
  CHECK(!s.miss(alice, 45));
  CHECK(s.out(46) == members{});
  CHECK(s.miss(alice, 40)); // the case of an earlier round took longer
  CHECK(s.out(55) == members{alice});
  CHECK(s.out(56) == members{});
}

TEST_CASE("standing: there is a bound on the members") {
  standing s({.most_members = 2});
  CHECK(!s.miss({1, 0}, 1));
  CHECK(!s.miss({2, 0}, 1));
  CHECK(!s.miss({3, 0}, 2)); // no place
  CHECK(!s.miss({3, 0}, 3));
  CHECK(s.out(3) == members{});
  // Later, the first two have a clean sheet again, and their places are free.
  CHECK(!s.miss({3, 0}, 30));
  CHECK(s.miss({3, 0}, 31));
  CHECK(s.out(31) == members{{3, 0}});
}
