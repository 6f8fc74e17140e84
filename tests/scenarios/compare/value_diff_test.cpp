#include "scenarios/compare/value_diff.hpp"
#include "tests/scenarios/compare/helpers.hpp"

using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

TEST_CASE("metrics that differ come with their path and the relative difference") {
  const auto a = summary_values_of(summary_json("aa", "2.5")),
             b = summary_values_of(summary_json("bb", "2.0"));
  REQUIRE((a.ok() && b.ok()));
  const auto out = diff_values(*a, *b);
  REQUIRE(out.size() == 2);
  CHECK(out[0].name == "event_hash");
  CHECK(!out[0].relative());
  CHECK(out[1].name == "loss.final");
  CHECK(*out[1].relative() == doctest::Approx(-0.2));
  CHECK(to_text(out[1].a) == "2.5");
}

TEST_CASE("how long the machine took is no difference, but a null or a missing value is one") {
  const auto a = summary_values_of(
      R"({"wall_seconds":1,"peak_rss_bytes":1,"seed":1,"distortion":{"late_steps":1},"x":null})");
  const auto b = summary_values_of(
      R"({"wall_seconds":2,"peak_rss_bytes":2,"seed":2,"distortion":{"late_steps":2},"x":0,"y":1})");
  const auto out = diff_values(*a, *b);
  REQUIRE(out.size() == 2);
  CHECK(out[0].name == "x");
  CHECK(to_text(out[0].a) == "null");
  CHECK(!out[0].relative());
  CHECK(out[1].name == "y");
  CHECK(to_text(out[1].a) == "-");
}

TEST_CASE("a text that is no summary is an error, by value") {
  for (const char* text : {"", "{", "[1]", "7", "{\"a\":"}) CHECK(!summary_values_of(text).ok());
}
