#include "scenarios/observe/round_checks.hpp"
#include "tests/scenarios/observe/helpers.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;
using actors::outcome;

namespace {

invariant denominator(const swarm_round& what) {
  invariant out;
  check_denominator(what, out);
  return out;
}

invariant mass(const swarm_round& what, mass_options options = {}) {
  invariant out;
  check_mass_conserved(what, options, out);
  return out;
}

} // namespace

TEST_CASE("same_bits holds where all members hold the same values, to the last bit") {
  invariant check;
  std::vector<std::uint64_t> violated;
  round_book book([&](const swarm_round& what) { check_same_bits(what, check); });
  const auto run = [&](std::uint64_t epoch, float other) {
    for (std::uint32_t i = 0; i < 2; ++i)
      book.contributed(1s, 100 + i, contribution(epoch, i, 2, {{i, 1}}, {1}));
    book.ended(2s, 100,
               ending(epoch, 0, 2, outcome::ok, actors::reason::none, {{0, 1, {0, 1}, 2}}, {1}));
    book.ended(
        2s, 101,
        ending(epoch, 1, 2, outcome::ok, actors::reason::none, {{0, 1, {0, 1}, 2}}, {other}));
  };
  run(1, 1);
  CHECK(check.checked == 2);
  CHECK(check.violated == 0);
  run(2, std::nextafter(1.0f, 2.0f));
  CHECK(check.violated == 1);
  CHECK(check.first_violation.starts_with("at 2.000000000 s: member 1 (peer 65) holds other bits"));
}

TEST_CASE("denominator holds where each part was divided by the weight of its senders") {
  const invariant check = denominator(good_round());
  CHECK(check.checked == 4);
  CHECK(check.violated == 0);
}

TEST_CASE("denominator is violated by a count of peers, a stranger, disorder, or another list at "
          "one member") {
  swarm_round by_peers = good_round();
  by_peers.parts[1].weight = 2;
  CHECK(denominator(by_peers).violated == 1);
  CHECK(denominator(by_peers).first_violation.find(
            "part 1 was divided by 2, but its senders weigh 4") != std::string::npos);

  swarm_round stranger = good_round();
  stranger.parts[0].senders = {0, 1, 2};
  CHECK(denominator(stranger).violated == 1);

  swarm_round disorder = good_round();
  disorder.parts[0].senders = {1, 0};
  CHECK(denominator(disorder).violated >= 1);

  swarm_round other_list = good_round();
  other_list.members[1].same_parts = false;
  CHECK(denominator(other_list).violated == 1);
}

TEST_CASE("denominator wants the outcome that the parts have") {
  swarm_round missing = good_round();
  missing.parts[1] = {1, 2, {0}, 3};
  CHECK(denominator(missing).violated == 2); // both call it ok
  for (round_member& who : missing.members) who.outcome = outcome::partial;
  CHECK(denominator(missing).violated == 0);

  swarm_round none_missing = good_round();
  none_missing.members[0].outcome = outcome::partial;
  CHECK(denominator(none_missing).violated == 1);

  swarm_round empty_part = good_round();
  empty_part.parts.push_back({2, 2, {}, 0});
  CHECK(denominator(empty_part).violated == 0);

  swarm_round weightless = good_round(); // a member that only wants the result
  weightless.members.push_back(weightless.members[1]);
  weightless.members[2].weight = 0;
  CHECK(denominator(weightless).violated == 0);
}

TEST_CASE("mass_conserved holds for the weighted mean and for a part without one of the senders") {
  CHECK(mass(good_round()).violated == 0);
  CHECK(mass(good_round()).checked == 3);
  swarm_round partial = good_round();
  partial.parts[1] = {1, 2, {0}, 3};
  partial.mean = payload(std::vector<float>{2, 2});
  CHECK(mass(partial).violated == 0);
}

TEST_CASE("mass_conserved lets values be cut off where their codec ends, and nowhere else") {
  auto what = good_round();
  what.mean = payload(std::vector<float>{2, 1});
  what.members[0].values = payload(std::vector<float>{1, 100});
  what.members[1].values = payload(std::vector<float>{5, -2});
  CHECK(mass(what).violated == 1);
  what.mean = payload(std::vector<float>{2, (3 * 50 - 2) / 4.0F});
  CHECK(mass(what, {.allowed = {.largest = 50}}).violated == 0);
  what.mean = payload(std::vector<float>{2, (3 * 100 - 2) / 4.0F});
  CHECK(mass(what, {.allowed = {.largest = 50}}).violated ==
        0); // a part for which another codec was taken
  what.mean = payload(std::vector<float>{2, 50});
  CHECK(mass(what, {.allowed = {.largest = 50}}).violated == 1);
}

TEST_CASE("mass_conserved is violated by equal weights, by a division by peers, and by NaN") {
  swarm_round equal = good_round();
  equal.mean = payload(std::vector<float>{3, 0});
  CHECK(mass(equal).violated == 2);
  CHECK(mass(equal).first_violation.find(
            "value 0 is 3, but the weighted mean of its 2 senders is 2") != std::string::npos);
  swarm_round by_peers = good_round();
  by_peers.mean = payload(std::vector<float>{4, 2});
  CHECK(mass(by_peers).violated == 2);
  swarm_round nan = good_round();
  nan.mean = payload(std::vector<float>{2, std::nanf("")});
  CHECK(mass(nan).violated == 1);
  swarm_round slightly = good_round();
  slightly.mean = payload(std::vector<float>{2, 1.0001f});
  CHECK(mass(slightly).violated == 1);
  swarm_round rounded = good_round();
  rounded.mean = payload(std::vector<float>{2, std::nextafter(1.0f, 2.0f)});
  CHECK(mass(rounded).violated == 0);
}

TEST_CASE("mass_conserved does not judge parts that an attacker may have reduced") {
  auto what = good_round();
  what.parts[0].part = 0;
  what.parts[1].part = 1;
  for (auto& part : what.parts) { // no attacker's values are in the parts
    part.senders = {1};
    part.weight = 1;
  }
  what.mean = payload(std::vector<float>{3, -2});
  mass_options options;
  options.honest = [](actors::peer_id peer) { return peer != 100; };
  CHECK(mass(what, options).violated == 0);
  what.mean = payload(std::vector<float>{5, 3});
  CHECK(mass(what, options).violated == 1);
  // The reducer of the second part is lost. The attacker may have taken the part over.
  what.members[1].ended = false;
  CHECK(mass(what, options).violated == 0);
  options.honest = {};
  CHECK(mass(what, options).violated == 1);
}

TEST_CASE("mass_conserved wants parts that tile the vector and payloads of one size") {
  swarm_round gap = good_round();
  gap.parts[1].begin = 2;
  CHECK(mass(gap).violated == 1);
  swarm_round longer = good_round();
  longer.mean = payload(std::vector<float>{2, 1, 0});
  CHECK(mass(longer).violated == 1);
  swarm_round size_only = good_round();
  size_only.mean = payload::size_only(8);
  for (round_member& who : size_only.members) who.values = payload::size_only(8);
  CHECK(mass(size_only).violated == 0);
  size_only.members[1].values = payload::size_only(12);
  CHECK(mass(size_only).violated == 1);
}

TEST_CASE("mass_conserved on a budget looks at other coordinates in every epoch") {
  swarm_round big = good_round();
  constexpr std::size_t n = 1000;
  std::vector<float> mean(n, 1.0f);
  big.members[0].values = big.members[1].values = payload(mean);
  mean[500] = 2.0f;
  big.mean = payload(mean);
  big.parts = {{0, n, {0, 1}, 4}};
  int caught = 0;
  for (std::uint64_t epoch = 0; epoch < 11; ++epoch) {
    big.epoch = epoch;
    caught += mass(big, {.allowed = {.relative = 1e-5}, .budget = 200}).violated > 0
                  ? 1
                  : 0; // every 11th
  }
  CHECK(caught == 1);
  CHECK(mass(big).violated == 1);
}

TEST_CASE("mass_conserved compares no part that an attacker contributed to") {
  // The attacker sent other values than it computed, so the mean is not that of its own word.
  swarm_round what = good_round();
  std::vector<float> mean(what.mean.floats().begin(), what.mean.floats().end());
  for (auto& each : mean) each += 1;
  what.mean = payload{std::move(mean)};
  CHECK(mass(what).violated > 0);
  mass_options options;
  options.honest = [&](actors::peer_id peer) { return peer != what.members[1].peer; };
  CHECK(mass(what, options).violated == 0);
  options.honest = [](actors::peer_id) { return true; };
  CHECK(mass(what, options).violated > 0);
}
