#include "actors/pipeline/stage_audit.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <set>
#include <vector>

using namespace shoal;
using actors::peer_id;
using actors::stage_audit;
using verdict = stage_audit::verdict;

namespace {

const std::vector<float> right{1, 2, 3, 4}, wrong{1, 2, 3, 5}, other{0, 2, 3, 4};

stage_audit begun(std::vector<float> values, double loss = 0) {
  return stage_audit({10, std::move(values), loss}, 2, 1e-3);
}

} // namespace

TEST_CASE("an output that a second host finds again is right") {
  auto audit = begun(right);
  CHECK(audit.found() == verdict::open);
  CHECK(audit.add({11, right, 0}) == verdict::right);
  CHECK(audit.wrong_peers().empty());
  CHECK(audit.peers() == std::set<peer_id>{10, 11});
}

TEST_CASE("a third host decides who of two is wrong") {
  auto audit = begun(wrong);
  CHECK(audit.add({11, right, 0}) == verdict::open);
  CHECK(audit.add({12, right, 0}) == verdict::wrong);
  CHECK(audit.wrong_peers() == std::set<peer_id>{10});

  auto honest = begun(right);
  CHECK(honest.add({11, wrong, 0}) == verdict::open);
  CHECK(honest.add({12, right, 0}) == verdict::wrong);
  CHECK(honest.wrong_peers() == std::set<peer_id>{11});
}

TEST_CASE("an audit goes on until two opinions agree, and blames all others") {
  auto audit = begun(wrong);
  CHECK(audit.add({11, other, 0}) == verdict::open);
  CHECK(audit.add({12, right, 0}) == verdict::open);
  CHECK(audit.add({13, right, 0}) == verdict::wrong);
  CHECK(audit.wrong_peers() == std::set<peer_id>{10, 11});
}

TEST_CASE("an audit without a further host blames nobody") {
  auto audit = begun(wrong);
  CHECK(audit.add({11, right, 0}) == verdict::open);
  CHECK(audit.give_up() == verdict::disputed);
  CHECK(audit.wrong_peers().empty());
}

TEST_CASE("outputs agree within the bound for each row and no further") {
  auto near = begun({1, 2, 3, 4.001F});
  CHECK(near.add({11, right, 0}) == verdict::right);
  // Off by more than the bound in its own row, and by less over all rows.
  auto far = begun({1.003F, 2, 300, 400});
  CHECK(far.add({11, {1, 2, 300, 400}, 0}) == verdict::open);
}

TEST_CASE("another loss or another size or values that are no numbers do not agree") {
  auto loss = begun(right, 2.5);
  CHECK(loss.add({11, right, 2.6}) == verdict::open);
  auto size = begun(right);
  CHECK(size.add({11, {1, 2}, 0}) == verdict::open);
  auto unread = begun({});
  CHECK(unread.add({11, right, 0}) == verdict::open);
  CHECK(unread.add({12, right, 0}) == verdict::wrong);
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  auto none = begun({nan, 2, 3, 4});
  CHECK(none.add({11, {nan, 2, 3, 4}, 0}) == verdict::open);
  CHECK(none.add({12, right, 0}) == verdict::open);
  CHECK(none.add({13, right, 0}) == verdict::wrong);
  CHECK(none.wrong_peers() == std::set<peer_id>{10, 11});
}
