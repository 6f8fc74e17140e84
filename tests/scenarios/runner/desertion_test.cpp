#include "scenarios/runner/desertion.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;

TEST_CASE("a host is deserted when the last host that it was linked with says goodbye") {
  desertion d;
  CHECK_FALSE(d.since());
  d.linked("p-0");
  d.linked("p-1");
  CHECK_FALSE(d.left("p-0", 5s));
  CHECK_FALSE(d.since());
  CHECK(d.left("p-1", 7s));
  CHECK(d.since() == 7s);
  CHECK_FALSE(d.left("p-1", 8s)); // says it again
  CHECK(d.since() == 7s);
}

TEST_CASE("a goodbye of a host that was never linked deserts nobody") {
  desertion d;
  CHECK_FALSE(d.left("stranger", 1s));
  CHECK_FALSE(d.since());
}

TEST_CASE("a host that is lost without a goodbye stays expected: it may only be restarted") {
  desertion d;
  d.linked("p-0");
  CHECK_FALSE(d.lost("p-0", 1s));
  CHECK_FALSE(d.since());
  d.linked("p-0");
  CHECK(d.left("p-0", 9s));
}

TEST_CASE("a host that is dialled while its process ends and is lost then has left again") {
  desertion d;
  d.linked("p-0");
  CHECK(d.left("p-0", 10s));
  d.linked("p-0"); // the host's listener still accepts
  CHECK_FALSE(d.since());
  CHECK(d.lost("p-0", 11s)); // 'the other side is gone'
  CHECK(d.since() == 11s);
}

TEST_CASE("a host that comes back after a goodbye ends the desertion") {
  desertion d;
  d.linked("p-0");
  CHECK(d.left("p-0", 10s));
  d.linked("p-1");
  CHECK_FALSE(d.since());
  CHECK(d.left("p-1", 30s));
}
