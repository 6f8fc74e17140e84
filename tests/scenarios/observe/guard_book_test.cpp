#include "scenarios/observe/guard_book.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

guarded_round whole_round() {
  guarded_round out;
  out.at = duration{7};
  out.group = "ab";
  out.epoch = 31;
  out.committed = 16;
  out.audits = {{"home-1", "lab-2", "wrong"}, {"home-2", "home-3", ""}};
  out.accusations = {{"home-1", "lab-2", "gradient"}};
  out.verdicts = {{"lab-2", "gradient"}};
  out.distances = {{"home-1", 0.5}, {"lab-2", 12}};
  return out;
}

} // namespace

TEST_CASE("a guarded round reads back from its line and other lines are refused") {
  const auto what = whole_round();
  const auto read = guarded_round_from(to_json(what));
  REQUIRE(read);
  CHECK(*read == what);
  auto far = what;
  far.distances = {{"lab-2", std::numeric_limits<double>::infinity()}};
  const auto again = guarded_round_from(to_json(far));
  REQUIRE(again);
  CHECK(std::isnan(again->distances.front().second));
  for (const auto* line : {"", "{}", "[1]", R"({"at_ns":1,"group":"a","epoch":"x"})"}) {
    const auto wrong = guarded_round_from(line);
    REQUIRE(!wrong);
    CHECK(wrong.error().find("not a round of a guard") != std::string::npos);
  }
}

TEST_CASE("a book of guarded rounds unites what several hosts know of a round") {
  guard_book book;
  auto first = whole_round(), second = whole_round();
  first.audits = {{"home-2", "home-3", ""}};
  first.accusations.clear();
  first.verdicts.clear();
  first.distances.clear();
  second.audits = {{"home-2", "home-3", "right"}, {"home-1", "lab-2", "wrong"}};
  second.committed = 3;
  book.add(first);
  book.add(second);
  book.add(second);
  REQUIRE(book.all().size() == 1);
  const auto& one = book.all().front();
  CHECK(one.committed == 16);
  CHECK(one.audits == second.audits);
  CHECK(one.accusations.size() == 1);
  CHECK(one.verdicts.size() == 1);
  CHECK(one.distances.size() == 2);
}

TEST_CASE("a book of guarded rounds is bounded and keeps those with accusations longer") {
  guard_book book;
  const auto add = [&](std::uint64_t epoch, bool eventful) {
    guarded_round one;
    one.group = fmt::format("{:08x}", epoch);
    one.epoch = epoch;
    if (eventful) one.verdicts = {{"lab-2", "gradient"}};
    book.add(std::move(one));
  };
  for (std::uint64_t epoch = 0; epoch < 1000; ++epoch) add(epoch, epoch == 5);
  CHECK(book.all().size() == guard_book::most_rounds);
  CHECK(book.all().front().epoch == 5);
  CHECK(book.all().back().epoch == 999);
  for (std::uint64_t epoch = 1000; epoch < 2000; ++epoch) add(epoch, true);
  CHECK(book.all().size() == guard_book::most_rounds);
  CHECK(book.all().back().epoch == 1999);
  CHECK(book.all().front().epoch > 5);
}
