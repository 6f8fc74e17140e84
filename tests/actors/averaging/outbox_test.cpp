#include "actors/averaging/outbox.hpp"

#include <doctest/doctest.h>

using namespace shoal::actors;

TEST_CASE("a member gets its items in order and no more than the window at a time") {
  outbox box(2, 2);
  for (std::uint32_t k = 0; k < 3; ++k) box.queue(1, {false, 0, k});
  CHECK(box.waiting(1) == 3);
  CHECK(box.waiting(0) == 0);
  for (std::uint32_t k = 0; k < 2; ++k) {
    CHECK(box.next(1) == outbox::item{false, 0, k});
    box.sent(1);
  }
  CHECK_FALSE(box.next(1));
  CHECK(box.confirmed(1));
  CHECK(box.next(1) == outbox::item{false, 0, 2});
  CHECK_FALSE(box.next(1));
}

TEST_CASE("a skipped item is not under way and a confirmation of nothing is refused") {
  outbox box(1, 1);
  box.queue(0, {true, 3, 0});
  box.queue(0, {true, 3, 1});
  CHECK(box.next(0));
  CHECK(box.next(0) == outbox::item{true, 3, 1});
  CHECK_FALSE(box.confirmed(0));
}

TEST_CASE("a lost member's items are dropped and a failed round drops all items") {
  outbox box(2, 1);
  for (std::uint32_t m = 0; m < 2; ++m) {
    box.queue(m, {});
    box.queue(m, {});
    CHECK(box.next(m));
    box.sent(m);
  }
  box.drop(0);
  CHECK(box.waiting(0) == 0);
  CHECK_FALSE(box.confirmed(0));
  box.clear();
  CHECK(box.waiting(1) == 0);
  CHECK(box.confirmed(1)); // an item on its way may still be confirmed
}
