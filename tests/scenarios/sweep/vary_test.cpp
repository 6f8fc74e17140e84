#include "scenarios/sweep/vary.hpp"

#include <doctest/doctest.h>

using namespace shoal::scenarios;
using strings = std::vector<std::string>;

namespace {

strings values(const std::string& text) {
  const auto out = parse_varied(text);
  INFO(text, ": ", out ? "" : out.error());
  REQUIRE(out.ok());
  return out->values;
}

std::string refusal(const std::string& text) {
  const auto out = parse_varied(text);
  return out ? "" : out.error();
}

} // namespace

TEST_CASE("values are taken as they stand, with commas in brackets and quotes") {
  CHECK(parse_varied("averaging.group_size=4,8,16")->path == "averaging.group_size");
  CHECK(values("a=4,8,16") == strings{"4", "8", "16"});
  CHECK(values("a=cable") == strings{"cable"});
  CHECK(values("a=[x,y],[z]") == strings{"[x,y]", "[z]"});
  CHECK(values("a={p: 1, q: 2},\"u,v\"") == strings{"{p: 1, q: 2}", "\"u,v\""});
  CHECK(values("data.files=../x,../y") == strings{"../x", "../y"});
  CHECK(values("data.files=../x:2") == strings{"../x:2"});
}

TEST_CASE("a range has both ends as they were written and keeps units") {
  CHECK(values("a=5Mbit..50Mbit:5") ==
        strings{"5Mbit", "16.25Mbit", "27.5Mbit", "38.75Mbit", "50Mbit"});
  CHECK(values("a=10ms..1s:3") == strings{"10ms", "505ms", "1s"});
  CHECK(values("a=256KiB..1MiB:4") == strings{"256KiB", "512KiB", "768KiB", "1MiB"});
  CHECK(values("a=10%..50%:3") == strings{"10%", "30%", "50%"});
  CHECK(values("a=0..1:5") == strings{"0", "0.25", "0.5", "0.75", "1"});
  CHECK(values("a=0..0.3:4") == strings{"0", "0.1", "0.2", "0.3"});
  CHECK(values("a=-1..1:3") == strings{"-1", "0", "1"});
  CHECK(values("a=0..10Mbit:3") == strings{"0", "5Mbit", "10Mbit"});
}

TEST_CASE("equal ratios") {
  CHECK(values("a=4..64:5log") == strings{"4", "8", "16", "32", "64"});
  CHECK(values("a=1e-4..1e-1:4log") == strings{"1e-4", "0.001", "0.01", "1e-1"});
  CHECK(values("a=1Mbit..100Mbit:3log") == strings{"1Mbit", "10Mbit", "100Mbit"});
}

TEST_CASE("a text that is no list and no range of values is refused with the reason") {
  CHECK(refusal("averaging.group_size") ==
        "expected PATH=VALUES, for example averaging.group_size=4,8,16");
  CHECK(refusal("=4") == "expected PATH=VALUES, for example averaging.group_size=4,8,16");
  CHECK(refusal("a=") == "no values");
  CHECK(refusal("a=4,,8") == "an empty value");
  CHECK(refusal("a=4,8,4") == "4 is there twice");
  CHECK(refusal("a=50Mbit..5Mbit:5") == "the range runs backwards: 50Mbit is above 5Mbit");
  CHECK(refusal("a=1s..900ms:5") == "the range runs backwards: 1s is above 900ms");
  CHECK(refusal("a=5..5:3") == "the range is empty: both ends are 5");
  CHECK(refusal("a=4..8:0") == "a range has at least two values, its ends; this one has 0");
  CHECK(refusal("a=4..8:1") == "a range has at least two values, its ends; this one has 1");
  CHECK(refusal("a=4..8") == "a range says how many values it has, as in 4..8:5 or 4..8:5log");
  CHECK(refusal("a=4..8:many") == "a range says how many values it has, as in 4..8:5 or 4..8:5log");
  CHECK(refusal("a=4..8:100001") == "100001 values; at most 100000 cells");
  CHECK(refusal("a=4Mbit..8s:3") == "'4Mbit' and '8s' are not of one kind");
  CHECK(refusal("a=4..8furlongs:3") == "'8furlongs' is no number with or without a unit");
  CHECK(refusal("a=0..8:3log") == "equal ratios need a beginning above 0");
}

TEST_CASE("seeds are a number of them, a list or a range") {
  using numbers = std::vector<std::uint64_t>;
  CHECK(*parse_seeds("3") == numbers{1, 2, 3});
  CHECK(*parse_seeds("11,3,7") == numbers{11, 3, 7});
  CHECK(*parse_seeds("5..7") == numbers{5, 6, 7});
  CHECK(*parse_seeds("5..5") == numbers{5});
  CHECK(*parse_seeds("18446744073709551615..18446744073709551615") ==
        numbers{18446744073709551615u});
  CHECK(parse_seeds("0").error() == "at least one seed is needed");
  CHECK(parse_seeds("7..5").error() == "the range runs backwards: 7 is above 5");
  CHECK(parse_seeds("3,3").error() == "3 is there twice");
  CHECK(parse_seeds("3,x").error() == "'x' is no seed");
  CHECK(parse_seeds("-2").error() ==
        "'-2': expected how many, a list or a range, as in 20, 3,7,11 or 5..9");
  CHECK(parse_seeds("100001").error() == "more than 100000 seeds");
  CHECK(parse_seeds("0..18446744073709551615").error() == "more than 100000 seeds");
}

TEST_CASE("a value has a place on an axis if it is a quantity") {
  CHECK(*magnitude_of("5Mbit") == 5e6);
  CHECK(*magnitude_of("250ms") == 0.25);
  CHECK(*magnitude_of("1KiB") == 1024);
  CHECK(*magnitude_of("-3") == -3);
  CHECK(!magnitude_of("cable"));
}
