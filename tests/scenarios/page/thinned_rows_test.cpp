#include "scenarios/page/thinned_rows.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

using namespace shoal::scenarios;

TEST_CASE("rows are merged as their columns say when there are too many") {
  thinned_rows rows;
  rows.set_columns({{"time"},
                    {"rate", merge_rule::mean},
                    {"samples", merge_rule::sum},
                    {"loss", merge_rule::mean}});
  constexpr int count = 100'000;
  for (int i = 0; i < count; ++i)
    rows.add(fmt::format("{},{},1,{}\n", i, i % 2 == 0 ? 10 : 20, i % 4 == 0 ? "" : "2"));
  REQUIRE(rows.rows().size() <= 2048);
  CHECK(rows.rows().size() > 1024);
  double samples = 0;
  for (const auto& row : rows.rows()) samples += row[2];
  CHECK(samples == count);
  CHECK(rows.rows().front()[1] == doctest::Approx(15));
  CHECK(rows.rows().front()[3] == doctest::Approx(2));
  CHECK(rows.rows().back()[0] == count - 1);
}

TEST_CASE("an unknown value stays unknown, and is no number") {
  thinned_rows rows;
  rows.set_columns({{"a"}, {"b"}, {"c"}});
  rows.add("1,,x\n2,3,4\n");
  REQUIRE(rows.rows().size() == 2);
  CHECK(std::isnan(rows.rows()[0][1]));
  CHECK(std::isnan(rows.rows()[0][2]));
  CHECK(rows.rows()[1][2] == 4);
}
