// actors/pipeline/gradient_book: each micro-batch counts once in a stage.
#include "actors/pipeline/gradient_book.hpp"

#include <doctest/doctest.h>

using namespace shoal::actors;
using answer = gradient_book::answer;

TEST_CASE("a gradient counts once however often its trainer says so") {
  gradient_book book;
  const pass_id pass{7, 1};
  book.hold(pass, 2, 4, {4, 8});
  CHECK(book.samples() == 0);
  CHECK(book.count(pass, 2) == answer::counted);
  CHECK(book.count(pass, 2) == answer::repeated);
  // A copy that was computed again changes nothing.
  book.hold(pass, 2, 4, {100, 100});
  CHECK(book.count(pass, 2) == answer::repeated);
  CHECK(book.samples() == 4);
  CHECK(book.mean() == std::vector<float>{1, 2});
}

TEST_CASE("a gradient that nobody has computed here does not count") {
  gradient_book book;
  book.hold({7, 1}, 2, 4, {1});
  CHECK(book.count({7, 1}, 1) == answer::unknown);
  CHECK(book.count({8, 1}, 2) == answer::unknown);
  CHECK(book.count({7, 2}, 2) == answer::unknown);
  CHECK(book.samples() == 0);
  CHECK(book.mean().empty());
}

TEST_CASE("micro-batches of unequal sizes are weighed by their samples") {
  gradient_book book;
  book.hold({1, 1}, 0, 1, {1});
  book.hold({2, 1}, 0, 3, {9});
  CHECK(book.count({2, 1}, 0) == answer::counted);
  CHECK(book.count({1, 1}, 0) == answer::counted);
  CHECK(book.mean() == std::vector<float>{2.5F});
  book.clear();
  CHECK(book.samples() == 0);
  CHECK(book.count({1, 1}, 0) == answer::unknown);
}

TEST_CASE("no more samples of one trainer count than a batch has") {
  gradient_book book(8);
  for (std::uint64_t number = 0; number < 4; ++number) {
    book.hold({7, number}, 0, 3, {1});
    book.count({7, number}, 0);
  }
  CHECK(book.samples() == 6);
  book.hold({1, 0}, 0, 8, {1});
  CHECK(book.count({1, 0}, 0) == gradient_book::answer::counted);
  // A step frees the room.
  book.clear();
  book.hold({7, 9}, 0, 3, {1});
  CHECK(book.count({7, 9}, 0) == gradient_book::answer::counted);
}

TEST_CASE("a trainer that lets its gradients wait costs a peer no more than their limit") {
  gradient_book book;
  book.hold({2, 7}, 0, 1, {1});
  for (std::uint64_t n = 0; n < 1000; ++n) book.hold({1, n}, 0, 1, {1});
  CHECK(book.held() == gradient_book::most_held + 1);
  CHECK(book.has({2, 7}, 0));
  CHECK(book.has({1, 999}, 0));
  CHECK(book.count({1, 0}, 0) == gradient_book::answer::unknown);
}
