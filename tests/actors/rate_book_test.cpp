// Whose line carries less than it says is found; nobody else is, however long a swarm trains.
#include "actors/averaging/rate_book.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace shoal;
using namespace shoal::actors;

namespace {

using seconds = std::vector<double>;

std::vector<duration> durations(const seconds& of) {
  std::vector<duration> out;
  for (const double s : of) out.push_back(from_seconds(s));
  return out;
}

/// Peers 1, 2, ...
std::vector<peer_id> peers(std::size_t count) {
  std::vector<peer_id> out;
  for (std::size_t i = 1; i <= count; ++i) out.push_back(i);
  return out;
}

void measure(rate_book& book, const seconds& times, const seconds& lines, int rounds = 1) {
  for (int i = 0; i < rounds; ++i)
    book.measured(peers(times.size()), durations(times), durations(lines));
}

} // namespace

TEST_CASE("rate book: a part that comes later than its line explains lowers its reducer's factor, "
          "and nobody else's") {
  rate_book book;
  measure(book, {4, 16, 4.4, 4.2}, {4, 4, 4, 4});
  CHECK(book.factors().size() == 1);
  CHECK(book.factor(2) == doctest::Approx(std::sqrt(4.4 / 16))); // by then three of four were there
  measure(book, {4, 8, 4.4, 4.2}, {4, 4, 4, 4});
  CHECK(book.factor(2) == doctest::Approx(std::sqrt(4.4 / 16) * std::sqrt(4.4 / 8)));
  measure(book, {4, 4, 4, 4}, {4, 4, 4, 4}, 200);
  CHECK(book.factors().empty());
}

TEST_CASE("rate book: chance and short times blame nobody, nor does a lone part") {
  rate_book book;
  measure(book, {4, 4.9, 4, 4}, {3, 3, 3, 3});          // within tolerance
  measure(book, {0.01, 0.1, 0.01, 0.01}, {0, 0, 0, 0}); // within `least`
  measure(book, {9, 0, 0, 0}, {1, 0, 0, 0});
  CHECK(book.factors().empty());
}

TEST_CASE("rate book: those of another region are later together, and are not blamed for it") {
  // Of 30 parts 14 come from near by, in a round whose plan gave those little.
  seconds times(14, 6), lines(14, 27);
  times.insert(times.end(), 16, 56);
  lines.insert(lines.end(), 16, 49);
  rate_book few, many;
  measure(few, times, lines, 50);
  CHECK(few.factors().empty());
  std::reverse(times.begin(), times.end()); // more near ones than far ones
  std::reverse(lines.begin(), lines.end());
  times.insert(times.end(), 8, 6);
  lines.insert(lines.end(), 8, 27);
  measure(many, times, lines, 50);
  CHECK(many.factors().empty());
}

TEST_CASE("rate book: who was given much is late with it, and carries what it says") {
  rate_book book;
  measure(book, {60, 14, 15, 13, 14, 15}, {56, 14, 14, 14, 14, 14}, 20);
  CHECK(book.factors().empty());
  measure(book, {160, 14, 15, 13, 14, 15}, {56, 14, 14, 14, 14, 14});
  CHECK(book.factor(1) == doctest::Approx(std::sqrt(56.0 / 160)));
}

TEST_CASE("rate book: who has no part is trusted again in time, and so is who is not there") {
  rate_book book;
  for (int i = 0; i < 50; ++i) measure(book, {4, 400, 4, 4}, {4, 4, 4, 4});
  CHECK(book.factor(2) == doctest::Approx(rate_book::lowest));
  measure(book, {4, 0, 4, 4}, {4, 0, 4, 4}, 100);
  CHECK(book.factor(2) == doctest::Approx(rate_book::lowest * std::pow(rate_book::recovery, 100)));
  measure(book, {4}, {4}, 100);
  CHECK(book.factors().empty());
}

TEST_CASE("rate book: a round that is given up tells of the parts that did not come") {
  rate_book book;
  book.timed_out(peers(5), durations({20, 0, 22, 21, 0}), durations({20, 20, 20, 20, 0}),
                 from_seconds(180));
  CHECK(book.factors().size() == 1); // the fifth had none
  CHECK(book.factor(2) == doctest::Approx(std::sqrt(22.0 / 180)));
  // Our own line was the reason.
  rate_book ours;
  ours.timed_out(peers(5), durations({20, 0, 0, 0, 0}), durations({20, 20, 20, 20, 20}),
                 from_seconds(180));
  CHECK(ours.factors().empty());
  book.unmeasured();
  CHECK(book.factor(2) == doctest::Approx(rate_book::recovery * std::sqrt(22.0 / 180)));
}
