#include "scenarios/observe/case_book.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;

TEST_CASE("case book: one case for each member, in the order of their first events") {
  case_book book;
  CHECK(book.add({1s, "mallory", case_what::accused, "p-0", "a false vote", ""}));
  CHECK(book.add({2s, "eve", case_what::accused, "p-1", "a false part", ""}));
  CHECK(book.add({3s, "mallory", case_what::proven, "p-0", "two votes in one round", ""}));
  CHECK(book.add({3s, "mallory", case_what::banned, "p-0", "two votes in one round", "vote ab"}));
  CHECK(book.add({4s, "mallory", case_what::banned, "p-1", "two votes in one round", "vote cd"}));
  CHECK(book.add({5s, "mallory", case_what::round, "", "epoch 3: failed, no_majority", ""}));
  REQUIRE(book.all().size() == 2);
  const auto& first = book.all().front();
  CHECK((first.member == "mallory" && first.begun == 1s));
  CHECK((first.deed == "two votes in one round" && first.proof == "vote ab"));
  CHECK(first.bans.size() == 2);
  CHECK(first.bans[1] == case_file::report{4s, "p-1"});
  CHECK(first.rounds.front().how == "epoch 3: failed, no_majority");
  CHECK(book.all().back().proof.empty());
  CHECK((book.has("eve") && !book.has("p-0")));
}

TEST_CASE("case book: an event counts once for each host, and floods stay small") {
  case_book book;
  const case_event flood{1s, "mallory", case_what::accused, "p-0", "a false vote", ""};
  CHECK(book.add(flood));
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(book.add(flood));
  for (std::size_t i = 0; i < 2 * case_book::most_reasons; ++i)
    book.add({2s, "mallory", case_what::accused, "p-0", fmt::format("reason {}", i), ""});
  CHECK(book.all().front().accusations.size() == case_book::most_reasons);
  for (std::size_t i = 0; i < 2 * case_book::most_rounds; ++i)
    book.add({3s, "mallory", case_what::round, "", "epoch 1: failed, none", ""});
  CHECK(book.all().front().rounds.size() == case_book::most_rounds);
  for (std::size_t i = 0; i < 2 * case_book::most_cases; ++i)
    book.add({4s, fmt::format("m-{}", i), case_what::accused, "p-0", "x", ""});
  CHECK(book.all().size() == case_book::most_cases);
}

TEST_CASE("case book: an event is one line of JSON, and a damaged line is refused") {
  const case_event what{1500ms, "mal\"lory\n", case_what::banned, "p-0", "two votes", "vote ab"};
  const auto line = to_json(what);
  CHECK(line.find('\n') == std::string::npos);
  const auto read = case_event_from(line);
  REQUIRE(read.ok());
  CHECK(*read == what);
  for (std::size_t cut = 0; cut < line.size(); ++cut)
    CHECK_FALSE(case_event_from(std::string_view(line).substr(0, cut)).ok());
  auto other = line;
  other.replace(other.find("banned"), 6, "loved!");
  CHECK(case_event_from(other).error() == "no event of a case is called 'loved!'");
}
