#include "actors/training/progress.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();

/// Peers of one host each, and a reader that knows the owner of each address.
struct lab {
  using silent = collector<found>;
  mini_world world;
  std::map<peer_id, caf::actor> hosts;
  std::map<peer_id, member_id> members;
  std::vector<shared<record>> records;
  progress_table table{{1000, 10'000}};

  caf::actor host_of(peer_id peer) {
    auto& address = hosts[peer];
    if (!address)
      address = world.spawn<silent>(world.add_host(fmt::format("h{}", peer)),
                                    std::make_shared<silent::log>());
    return address;
  }
  /// A record of `peer` under the sub-key of `as`.
  void add(peer_id peer, progress what, peer_id as, std::int64_t expires = 0) {
    records.push_back(record{fmt::format("{:016x}", as), host_of(peer), what.pack(), expires});
  }
  void add(peer_id peer, const progress& what) { add(peer, what, peer); }
  void read() {
    table.replace(records, 1, 1s,
                  [this](const caf::actor& address) {
                    for (const auto& [id, known] : hosts)
                      if (known == address)
                        return progress_table::owner{id, members.contains(id) ? members[id]
                                                                              : member_id{id, 0}};
                    return progress_table::owner{};
                  },
                  {1, 0});
  }
};

progress at(std::uint64_t epoch, std::uint64_t samples = 0) {
  progress out;
  out.epoch = epoch;
  out.state = {5, epoch};
  out.samples = samples;
  return out;
}

} // namespace

TEST_CASE("progress: a member cannot write records in the names of other peers") {
  lab t;
  t.add(2, at(3));
  for (peer_id made_up = 100; made_up < 110; ++made_up) t.add(2, at(1'000'000), made_up);
  t.add(3, at(1'000'000), 2);
  t.read();
  CHECK(t.table.entries().size() == 1);
  CHECK(t.table.at(2).what.epoch == 3);
}

TEST_CASE("progress: of several incarnations of one member, the record that expires last counts") {
  for (const bool newer_first : {false, true}) {
    CAPTURE(newer_first);
    lab t;
    t.members[2] = t.members[3] = {7, 7};
    t.add(2, at(3, 10), 2, newer_first ? 200 : 100);
    t.add(3, at(4, 10), 3, newer_first ? 100 : 200);
    t.read();
    REQUIRE(t.table.entries().size() == 1);
    CHECK(t.table.entries()[0].first == (newer_first ? 2u : 3u));
  }
}

TEST_CASE("progress: records of this member's other incarnations do not count") {
  lab t;
  t.members[2] = {1, 0};
  t.add(2, at(3));
  t.read();
  CHECK(t.table.entries().empty());
}

TEST_CASE("progress: a claim of 2^64 samples counts as the most that a member may have") {
  lab t;
  auto lie = at(3, huge);
  lie.contribution = huge;
  t.add(2, lie);
  t.add(3, lie);
  t.read();
  CHECK(t.table.samples_on({3, 0, {5, 3}}) == 2000);
  CHECK(t.table.contributions_to(3, {5, 3}, {}) == 2000);
}

TEST_CASE("progress: a claim of endless speed is expected to have no more than a member may have") {
  lab t;
  auto lie = at(3);
  lie.millisamples_per_second = huge;
  lie.computes_for_ms = huge;
  t.add(2, lie);
  t.read();
  CHECK(t.table.samples_expected_on({3, 0, {5, 3}}, 3600s, 0s) == doctest::Approx(1000));
}

TEST_CASE("progress: an epoch that no swarm reaches makes a record void") {
  lab t;
  t.add(2, at(huge));
  t.read();
  CHECK(t.table.entries().empty());
}

TEST_CASE("progress: a member that stays away from two rounds counts nothing until it takes part") {
  lab t;
  auto idle = at(3, 500);
  idle.millisamples_per_second = 1000;
  t.add(2, idle);
  t.add(3, at(3, 100));
  t.read();
  const branch here{3, 0, {5, 3}};
  CHECK(t.table.samples_on(here) == 600);
  t.table.took_part({{3, 0}}, {5, 3});
  CHECK(t.table.samples_on(here) == 600);
  t.table.took_part({{3, 0}}, {5, 3});
  CHECK(t.table.samples_on(here) == 100);
  CHECK(t.table.samples_expected_on(here, 1s, 0s) == doctest::Approx(100));
  CHECK(t.table.samples_per_second_near(3) == doctest::Approx(0));
  CHECK(t.table.expected_on(3, {5, 3}, {}).size() == 1);
  t.table.took_part({{2, 0}, {3, 0}}, {5, 3});
  CHECK(t.table.samples_on(here) == 600);
}

TEST_CASE("progress: without chains, a branch far beyond the median does not lead") {
  lab t;
  t.add(2, at(3));
  for (peer_id peer = 3; peer < 6; ++peer) t.add(peer, at(4));
  for (peer_id peer = 6; peer < 9; ++peer) t.add(peer, at(1'000'000));
  t.read();
  const branch own{3, 0, {5, 3}};
  CHECK(t.table.leading(own).epoch == 4);
  CHECK(t.table.most_followed(own).epoch == 1'000'000);
  t.add(9, at(4));
  t.read();
  CHECK(t.table.most_followed(own).epoch == 4);
}

TEST_CASE("progress: without chains, a branch leads once more than half as many members follow it "
          "as the one with most members") {
  lab t;
  const branch own{3, 0, {5, 3}};
  for (peer_id peer = 2; peer < 7; ++peer) t.add(peer, at(3));
  for (peer_id peer = 7; peer < 10; ++peer) t.add(peer, at(4));
  t.read();
  CHECK(t.table.leading(own) == own); // three beside six, with this peer
  t.add(10, at(4));
  t.read();
  CHECK(t.table.leading(own).epoch == 4);
  // A joiner's own state has one member, and so has that of a liar one epoch ahead.
  auto lie = at(5);
  lie.state = {6, 6};
  t.add(11, lie);
  t.read();
  CHECK(t.table.leading({0, 0, {5, 0}}).epoch == 4);
}

TEST_CASE("progress: a false history in a record of this peer's own state moves nobody") {
  lab t;
  auto lie = at(3);
  lie.history = 1'000'000;
  t.add(2, lie);
  t.read();
  const branch own{3, 0, {5, 3}};
  CHECK(t.table.leading(own) == own);
  CHECK(t.table.leading(own).history == 0);
}

TEST_CASE(
    "progress: the branch of a peer that gave false bytes leads nobody, also when the records "
    "are read again") {
  lab t;
  t.add(3, at(4));
  t.read();
  const branch own{3, 0, {5, 3}};
  REQUIRE(t.table.leading(own).epoch == 4);
  t.table.distrust(3);
  CHECK(t.table.leading(own).epoch == 3);
  t.read();
  CHECK(t.table.leading(own).epoch == 3);
}

TEST_CASE("progress: a claimed speed counts up to four times what certified samples show") {
  lab t;
  const auto with_speed = [](std::uint64_t samples_per_second) {
    auto out = at(3);
    out.millisamples_per_second = 1000 * samples_per_second;
    return out;
  };
  t.add(2, with_speed(12)); // honest
  t.add(3, with_speed(1'000'000'000));
  t.add(4, with_speed(1'000'000'000)); // new
  t.read();
  CHECK(t.table.samples_per_second_near(3) > 1e9);
  // This peer makes 10 samples a second, and had 20 in the round.
  t.table.certified({{{1, 0}, 20}, {{2, 0}, 24}, {{3, 0}, 2}}, {1, 0}, 10);
  CHECK(t.table.samples_per_second_near(3) == doctest::Approx(12 + 4 + 4 * 12));
  // A round in which a member had little halves its bound at most.
  t.table.certified({{{1, 0}, 20}, {{2, 0}, 1}, {{3, 0}, 2}}, {1, 0}, 10);
  CHECK(t.table.samples_per_second_near(3) == doctest::Approx(12 + 4 + 4 * 10));
  // Rounds without this peer show nothing.
  t.table.certified({{{3, 0}, 1'000'000}}, {1, 0}, 10);
  CHECK(t.table.samples_per_second_near(3) == doctest::Approx(12 + 4 + 4 * 10));
}

TEST_CASE(
    "progress: without a chain, a leader needs more than a third of the peers that would take "
    "the result") {
  lab t;
  t.read();
  CHECK(t.table.takers_needed(3, {5, 3}, {5, 2}, 1) == 1); // alone
  for (peer_id peer = 2; peer < 7; ++peer) t.add(peer, at(3, 10));
  t.add(7, at(2)); // peer 7 makes the step to this state
  auto late = at(3);
  late.part = round_part::came_late;
  t.add(8, late);
  auto auxiliary = at(3);
  auxiliary.arriving = 1;
  t.add(9, auxiliary);
  t.add(10, at(9));
  t.read();
  CHECK(t.table.takers_needed(3, {5, 3}, {5, 2}, 1) == 3); // seven with this one
  CHECK(t.table.takers_needed(3, {5, 3}, {5, 2}, 0) == 3); // six, of which an auxiliary is none
}
