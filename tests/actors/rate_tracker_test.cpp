// The rate tracker finds lines that carry less than their declared rate, and no others, however
// long a swarm trains.
#include "actors/averaging/rate_tracker.hpp"

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

/// The peers 1, 2, ...
std::vector<peer_id> peers(std::size_t count) {
  std::vector<peer_id> out;
  for (std::size_t i = 1; i <= count; ++i) out.push_back(i);
  return out;
}

void measure(rate_tracker& book, const seconds& times, const seconds& lines, int rounds = 1) {
  for (int i = 0; i < rounds; ++i)
    book.measured(peers(times.size()), durations(times), durations(lines));
}

} // namespace

TEST_CASE("rate tracker: a part that is later than its line explains lowers the factor of its "
          "reducer only") {
  rate_tracker book;
  measure(book, {4, 16, 4.4, 4.2}, {4, 4, 4, 4});
  CHECK(book.factors().size() == 1);
  // Three of the four parts were complete by then.
  CHECK(book.factor(2) == doctest::Approx(std::sqrt(4.4 / 16)));
  measure(book, {4, 8, 4.4, 4.2}, {4, 4, 4, 4});
  CHECK(book.factor(2) == doctest::Approx(std::sqrt(4.4 / 16) * std::sqrt(4.4 / 8)));
  measure(book, {4, 4, 4, 4}, {4, 4, 4, 4}, 200);
  CHECK(book.factors().empty());
}

TEST_CASE("rate tracker: chance, short times and a lone part lower no factor") {
  rate_tracker book;
  measure(book, {4, 4.9, 4, 4}, {3, 3, 3, 3});          // within tolerance
  measure(book, {0.01, 0.1, 0.01, 0.01}, {0, 0, 0, 0}); // within `least`
  measure(book, {9, 0, 0, 0}, {1, 0, 0, 0});
  CHECK(book.factors().empty());
}

TEST_CASE("rate tracker: reducers of a far region are late together, and their factors stay") {
  // 14 of 30 parts come from near by, in a round whose plan gave those reducers little.
  seconds times(14, 6), lines(14, 27);
  times.insert(times.end(), 16, 56);
  lines.insert(lines.end(), 16, 49);
  rate_tracker few, many;
  measure(few, times, lines, 50);
  CHECK(few.factors().empty());
  std::reverse(times.begin(), times.end()); // more near reducers than far ones
  std::reverse(lines.begin(), lines.end());
  times.insert(times.end(), 8, 6);
  lines.insert(lines.end(), 8, 27);
  measure(many, times, lines, 50);
  CHECK(many.factors().empty());
}

TEST_CASE("rate tracker: a reducer with a large part is late with it, and keeps its factor") {
  rate_tracker book;
  measure(book, {60, 14, 15, 13, 14, 15}, {56, 14, 14, 14, 14, 14}, 20);
  CHECK(book.factors().empty());
  measure(book, {160, 14, 15, 13, 14, 15}, {56, 14, 14, 14, 14, 14});
  CHECK(book.factor(1) == doctest::Approx(std::sqrt(56.0 / 160)));
}

TEST_CASE("rate tracker: the factor of a peer without a part or in no round recovers") {
  rate_tracker book;
  for (int i = 0; i < 50; ++i) measure(book, {4, 400, 4, 4}, {4, 4, 4, 4});
  CHECK(book.factor(2) == doctest::Approx(rate_tracker::lowest));
  measure(book, {4, 0, 4, 4}, {4, 0, 4, 4}, 100);
  CHECK(book.factor(2) ==
        doctest::Approx(rate_tracker::lowest * std::pow(rate_tracker::recovery, 100)));
  measure(book, {4}, {4}, 100);
  CHECK(book.factors().empty());
}

TEST_CASE("rate tracker: a round that timed out lowers the factors of missing parts") {
  rate_tracker book;
  book.timed_out(peers(5), durations({20, 0, 22, 21, 0}), durations({20, 20, 20, 20, 0}),
                 from_seconds(180));
  // The fifth reducer had no part.
  CHECK(book.factors().size() == 1);
  CHECK(book.factor(2) == doctest::Approx(std::sqrt(22.0 / 180)));
  // This member's own line was the reason.
  rate_tracker ours;
  ours.timed_out(peers(5), durations({20, 0, 0, 0, 0}), durations({20, 20, 20, 20, 20}),
                 from_seconds(180));
  CHECK(ours.factors().empty());
  book.unmeasured();
  CHECK(book.factor(2) == doctest::Approx(rate_tracker::recovery * std::sqrt(22.0 / 180)));
}
