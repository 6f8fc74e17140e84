#include "scenarios/observe/epoch_table.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;

TEST_CASE("an epoch's row has what was learnt at it, and is written when nobody is expected there "
          "any more") {
  epoch_table table(observed_view::whole);
  table.reached(0s, 0);
  table.trained(0, 3, 6);
  table.held_out(0, 5.5);
  table.trained(1, 1, 4); // the first one there says so after it has computed
  table.reached(1500ms, 1);
  table.trained(0, 1, 4); // one that lags
  for (std::uint64_t epoch = 2; epoch < 8; ++epoch) {
    table.reached(std::chrono::seconds(epoch), epoch);
    CHECK(table.rows_that_are_over().empty());
  }
  table.reached(8s, 8);
  CHECK(table.rows_that_are_over().empty());
  table.reached(9s, 9);
  CHECK(table.rows_that_are_over() == "0,0.000000000,4,2.5,5.5\n");
  table.trained(0, 1, 100); // too late
  table.reached(20s, 20);
  const std::string more = table.rows_that_are_over();
  CHECK(more.starts_with("1,1.500000000,1,4,\n2,2.000000000,0,,\n"));
  CHECK(table.last_rows() == "20,20.000000000,0,,\n");
  CHECK(table.last_rows().empty());
}

TEST_CASE("a host's rows lag by one epoch, and what is not finite is left out") {
  epoch_table table(observed_view::local);
  table.reached(1s, 4); // the peer downloaded the state
  table.trained(4, 2, std::nan(""));
  table.held_out(4, std::nan(""));
  CHECK(table.rows_that_are_over().empty());
  table.reached(2s, 5);
  CHECK(table.rows_that_are_over().empty());
  table.reached(3s, 6);
  CHECK(table.rows_that_are_over() == "4,1.000000000,2,,\n");
  CHECK(table.last_rows() == "5,2.000000000,0,,\n6,3.000000000,0,,\n");
}
