// A round certificate is refused if any of its fields is changed.
#include "actors/averaging/certificate.hpp"
#include "actors/averaging/roster_plan.hpp"
#include "tests/actors/support/rosters.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

using dummy = collector<part_claim>;

struct fixture {
  mini_world world;
  std::vector<mini_host*> hosts;
  round_certificate good;

  explicit fixture(std::uint32_t members = 4, bool second = false) {
    auto& roster = good.roster;
    roster.epoch = 5;
    roster.state = {3, 4};
    roster.value_count = 100;
    roster.second_values = second ? 40 : 0;
    roster.attempt = 77;
    std::vector<const mini_host*> by;
    for (std::uint32_t m = 0; m < members; ++m) {
      auto& host = world.add_host(fmt::format("m-{}", m));
      hosts.push_back(&host);
      by.push_back(&host);
      member_info who;
      who.peer = host.id();
      who.address = world.spawn<dummy>(host, std::make_shared<dummy::log>());
      who.weight = m + 1;
      who.rate_up = who.rate_down = 1000;
      who.samples = {{m * 10, m + 1}};
      roster.members.push_back(std::move(who));
    }
    roster = sealed(std::move(roster), by, 1);
    good.second = second;
    good.version = {8, 9};
    for (std::uint32_t m = 0; m + 1 < members; ++m) vote(m);
  }
  void vote(std::uint32_t m) {
    good.votes.push_back({m, hosts[m]->sign(vote_statement(good.round(), good.version))});
  }
  void decline(std::uint32_t m, const group_id& of) {
    good.declines.push_back({m, hosts[m]->sign(decline_statement(of))});
  }
  bool holds(const round_certificate& what) { return check(what, *hosts[0]).ok(); }
};

} // namespace

TEST_CASE("certificate: more than two thirds of signed votes are a proof, two thirds are none") {
  fixture f;
  CHECK(f.holds(f.good));
  f.good.votes.pop_back();
  CHECK_FALSE(f.holds(f.good));
  // A member that declined does not count.
  f.decline(3, f.good.round());
  CHECK_FALSE(f.holds(f.good)); // two of three
  f.vote(2);
  CHECK(f.holds(f.good));

  fixture second(4, true);
  CHECK(second.good.round() == second_group(second.good.roster.group));
  CHECK(second.holds(second.good));
  second.good.second = false;
  CHECK_FALSE(second.holds(second.good));
}

TEST_CASE("certificate: a change of any field makes it void") {
  const std::vector<std::pair<const char*, std::function<void(round_certificate&)>>> changes{
      {"epoch", [](auto& c) { ++c.roster.epoch; }},
      {"state", [](auto& c) { ++c.roster.state.low; }},
      {"chunks", [](auto& c) { c.roster.chunk_bytes *= 2; }},
      {"codec", [](auto& c) { ++c.roster.codec; }},
      {"split", [](auto& c) { ++c.roster.split; }},
      {"values", [](auto& c) { ++c.roster.value_count; }},
      {"second values", [](auto& c) { ++c.roster.second_values; }},
      {"attempt", [](auto& c) { ++c.roster.attempt; }},
      {"leader", [](auto& c) { c.roster.leader = 0; }},
      {"no leader", [](auto& c) { c.roster.leader = 4; }},
      {"rate factors",
       [](auto& c) {
         c.roster.rate_factors = {1, 1, 1, 1};
       }},
      {"the leader's signature", [](auto& c) { c.roster.by = {}; }},
      {"group", [](auto& c) { ++c.roster.group.low; }},
      {"no members", [](auto& c) { c.roster.members.clear(); }},
      {"a member less", [](auto& c) { c.roster.members.pop_back(); }},
      {"a member twice", [](auto& c) { c.roster.members[1] = c.roster.members[0]; }},
      {"peer", [](auto& c) { c.roster.members[3].peer += 5; }},
      {"address", [](auto& c) { c.roster.members[0].address = c.roster.members[1].address; }},
      {"weight", [](auto& c) { ++c.roster.members[0].weight; }},
      {"rate up", [](auto& c) { ++c.roster.members[0].rate_up; }},
      {"rate down", [](auto& c) { ++c.roster.members[0].rate_down; }},
      {"reached", [](auto& c) { c.roster.members[0].reached = 1; }},
      {"takes", [](auto& c) { c.roster.members[3].takes = 0; }},
      {"samples", [](auto& c) { ++c.roster.members[0].samples[0].count; }},
      {"key", [](auto& c) { c.roster.members[0].key = c.roster.members[1].key; }},
      {"state root", [](auto& c) { ++c.roster.members[0].state_root.low; }},
      {"a member's signature", [](auto& c) { c.roster.members[0].by = {}; }},
      {"version", [](auto& c) { ++c.version.low; }},
      {"a vote's signature", [](auto& c) { c.votes[1].by = {}; }},
      {"a vote's member", [](auto& c) { c.votes[2].member = 3; }},
      {"a vote of nobody", [](auto& c) { c.votes[2].member = 4; }},
      {"a vote twice", [](auto& c) { c.votes[2] = c.votes[1]; }},
      {"round", [](auto& c) { c.second = true; }},
      {"a decline without a signature",
       [](auto& c) {
         c.declines = {{3, {}}};
       }},
      {"a decline of nobody",
       [](auto& c) {
         c.declines = {{9, {}}};
       }},
      {"a decline of a voter",
       [](auto& c) {
         c.declines = {{1, {}}};
       }},
  };
  fixture f;
  REQUIRE(f.holds(f.good));
  for (const auto& each : changes) {
    INFO(each.first);
    auto bad = f.good;
    each.second(bad);
    CHECK_FALSE(f.holds(bad));
  }
}

TEST_CASE("certificate: whoever changes the roster and signs anew cannot sign for the others") {
  fixture f;
  auto bad = f.good;
  bad.roster.members[3].weight = 1000;
  close_roster(bad.roster, *f.hosts[1]);
  CHECK_FALSE(f.holds(bad));
  // An own entry with another member's address.
  bad = f.good;
  bad.roster.members[1].address = bad.roster.members[0].address;
  sign_entry(bad.roster, bad.roster.members[1], *f.hosts[1]);
  close_roster(bad.roster, *f.hosts[1]);
  bad.votes.clear();
  for (std::uint32_t m = 0; m < 3; ++m)
    bad.votes.push_back({m, f.hosts[m]->sign(vote_statement(bad.round(), bad.version))});
  CHECK_FALSE(f.holds(bad));
}

TEST_CASE("certificate: one key has one place in a roster") {
  // Otherwise one member has several votes, under the numbers of its incarnations.
  fixture f;
  auto roster = f.good.roster;
  const auto signed_by = [&](const key256& key, const digest& what, const signature& by) {
    return f.hosts[0]->is_signed_by(key, what, by);
  };
  CHECK(check_roster(roster, signed_by).ok());
  auto again = roster.members.back();
  ++again.peer;
  sign_entry(roster, again, *f.hosts.back());
  roster.members.push_back(again);
  close_roster(roster, *f.hosts[1]);
  const auto fine = check_roster(roster, signed_by);
  REQUIRE_FALSE(fine.ok());
  CHECK(fine.error().ends_with("one key has two members"));
}

TEST_CASE("certificate: a version covers senders and values of each chunk, and the round before") {
  const std::vector<std::uint64_t> boundaries{0, 3, 5};
  const std::vector<part_outcome> parts{{0, 3, {0, 1}, 3, 0}, {3, 5, {0, 1}, 3, 1}};
  const payload values{std::vector<float>{1, 2, 3, 4, 5}};
  const auto good = version_of(boundaries, 8, parts, values);
  CHECK(version_of(boundaries, 8, parts, values) == good);
  CHECK(version_of(boundaries, 8, parts, payload{std::vector<float>{1, 2, 3, 4, 6}}) != good);
  CHECK(version_of(boundaries, 8, parts, values, {1, 1}) != good);
  auto others = parts;
  others[1].senders = {0};
  CHECK(version_of(boundaries, 8, others, values) != good);
  CHECK(version_of(boundaries, 8, parts, payload::size_only(20)) != good);
}

TEST_CASE(
    "a proof of two votes, of a vote and a decline or of two groups holds, and no other does") {
  fixture f;
  const auto signed_by = [&](const key256& key, const digest& what, const signature& by) {
    return f.hosts[0]->is_signed_by(key, what, by);
  };
  const auto round = f.good.round();
  auto& culprit = *f.hosts[2];
  contradiction votes{.what = contradiction::kind::two_votes,
                      .culprit = culprit.key(),
                      .round = round,
                      .first = {1, 1},
                      .second = {2, 2},
                      .first_by = culprit.sign(vote_statement(round, {1, 1})),
                      .second_by = culprit.sign(vote_statement(round, {2, 2}))};
  CHECK(votes.holds(signed_by));
  auto same = votes;
  same.second = same.first;
  same.second_by = same.first_by;
  CHECK_FALSE(same.holds(signed_by));
  auto other = votes;
  other.culprit = f.hosts[1]->key();
  CHECK_FALSE(other.holds(signed_by));

  auto decline = votes;
  decline.what = contradiction::kind::vote_and_decline;
  CHECK_FALSE(decline.holds(signed_by));
  decline.second_by = culprit.sign(decline_statement(round));
  CHECK(decline.holds(signed_by));

  contradiction groups;
  groups.what = contradiction::kind::two_groups;
  groups.culprit = f.hosts[1]->key(); // the leader
  groups.first_roster = groups.second_roster = f.good.roster;
  CHECK_FALSE(groups.holds(signed_by));
  groups.second_roster.members.pop_back();
  close_roster(groups.second_roster, *f.hosts[1]);
  CHECK(groups.holds(signed_by));
  ++groups.second_roster.attempt;
  close_roster(groups.second_roster, *f.hosts[1]);
  CHECK_FALSE(groups.holds(signed_by));
}

TEST_CASE("a claim of a huge rate counts like sixteen times the median's rate") {
  const auto roster_of = [](std::uint64_t rate) {
    group_begun roster;
    roster.value_count = 1'000'000;
    for (std::uint32_t m = 0; m < 64; ++m) {
      member_info who;
      who.peer = m + 1;
      who.weight = 1;
      who.rate_up = who.rate_down = m == 7 ? rate : 100'000'000;
      roster.members.push_back(who);
    }
    return roster;
  };
  const auto claimed = shares_of(roster_of(1'000'000'000'000'000));
  CHECK(claimed == shares_of(roster_of(1'600'000'000)));
  CHECK(claimed[7] < 0.5);
  CHECK(claimed[0] > 0);
  // The same for a leader that plans with next to nothing of the others' rates.
  auto roster = roster_of(100'000'000);
  roster.rate_factors.assign(64, packed_factor(1.0 / 65536));
  roster.rate_factors[7] = packed_factor(1);
  CHECK(shares_of(roster)[7] < 0.5);
  // A leader takes the parts of a third of the members away, and not those of all.
  for (const std::size_t none : {0, 1, 21, 64}) {
    roster.rate_factors.assign(64, packed_factor(1));
    std::fill_n(roster.rate_factors.begin(), none, packed_factor(0));
    const auto shares = shares_of(roster);
    for (std::size_t m = 0; m < 64; ++m) CHECK((shares[m] > 0) == (none > 21 || m >= none));
  }
  roster = roster_of(100'000'000);
  const auto boundaries = boundaries_of(roster);
  CHECK(boundaries.size() == 65);
  CHECK(boundaries.back() == 1'000'000);
  CHECK(unpacked_factor(packed_factor(1)) == 1);
  CHECK(unpacked_factor(packed_factor(0)) > 0);
}
