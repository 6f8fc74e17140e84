#include "actors/trust/beacon.hpp"

#include <doctest/doctest.h>

#include <set>
#include <vector>

using namespace shoal;
using namespace shoal::actors;

namespace {

const group_id group{7, 8};

key256 secret_of(std::uint64_t member) {
  return {member + 1, 2, 3, 4};
}

/// Four members that have committed.
beacon committed() {
  beacon out(group, 4);
  for (std::uint32_t i = 0; i < 4; ++i) out.commit(i, hidden(group, i, secret_of(i)));
  return out;
}

} // namespace

TEST_CASE("beacon: the same secrets give the same number in any order and others give another") {
  auto forward = committed(), backward = committed(), fewer = committed();
  std::set<digest> values{forward.value()};
  for (std::uint32_t i = 0; i < 4; ++i) {
    CHECK(forward.reveal(i, secret_of(i)));
    CHECK(backward.reveal(3 - i, secret_of(3 - i)));
    if (i > 0) CHECK(fewer.reveal(i, secret_of(i)));
    CHECK(values.insert(forward.value()).second); // each secret moves the number
  }
  CHECK(forward.value() == backward.value());
  CHECK(values.insert(fewer.value()).second);
  // The same secrets in another group are another number.
  beacon other({7, 9}, 4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    other.commit(i, hidden({7, 9}, i, secret_of(i)));
    CHECK(other.reveal(i, secret_of(i)));
  }
  CHECK(other.value() != forward.value());
}

TEST_CASE("beacon: only the secret that a member committed to is taken") {
  auto b = committed();
  CHECK(!b.reveal(0, secret_of(1)));
  CHECK(!b.reveal(9, secret_of(0)));
  CHECK(!b.has_revealed(0));
  CHECK(b.missing() == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(b.reveal(0, secret_of(0)));
  CHECK(b.reveal(0, secret_of(0))); // a copy changes nothing
  CHECK(b.missing() == std::vector<std::uint32_t>{1, 2, 3});

  beacon silent(group, 2);
  CHECK(!silent.has_committed(0));
  CHECK(!silent.reveal(0, secret_of(0)));
  CHECK(silent.missing().empty());
}

TEST_CASE("beacon: a commitment is final, and no member can use the commitment of another") {
  beacon b(group, 2);
  b.commit(0, hidden(group, 0, secret_of(0)));
  b.commit(0, hidden(group, 0, secret_of(5)));
  b.commit(9, hidden(group, 9, secret_of(9))); // there is no such member
  CHECK(!b.reveal(0, secret_of(5)));
  CHECK(b.reveal(0, secret_of(0)));
  b.commit(1, hidden(group, 0, secret_of(0)));
  CHECK(!b.reveal(1, secret_of(0)));
  CHECK(hidden(group, 0, secret_of(0)) != hidden({7, 9}, 0, secret_of(0)));
}
