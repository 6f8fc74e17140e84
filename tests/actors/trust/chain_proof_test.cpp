#include "actors/training/chain_pages.hpp"
#include "actors/trust/chain.hpp"
#include "tests/actors/support/certificates.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

const chain_point initial{0, {1, 1}};

/// Hosts with one actor each.
struct lab {
  using silent = collector<join_request>;
  mini_world world;
  std::vector<signer> members;

  explicit lab(std::size_t count = 4) {
    for (std::size_t i = 0; i < count; ++i) {
      auto& host = world.add_host("m" + std::to_string(i));
      members.push_back({&host, world.spawn<silent>(host, std::make_shared<silent::log>()), 1});
    }
  }
  host& reader() { return *members[0].on; }
  bool proves(const round_certificate& what) { return prove(shared_copy(what), reader()).ok(); }
};

} // namespace

TEST_CASE("chain: a certificate proves the step to the state that its votes are for") {
  lab t;
  const auto certificate = certify(t.members, initial, {5, 5}, {9, 9});
  const auto step = prove(shared_copy(certificate), t.reader());
  REQUIRE(step.ok());
  CHECK((*step)->before == initial);
  CHECK((*step)->after.epoch == 1);
  CHECK((*step)->after.state == state_after(initial.state, certificate.roster.group, {5, 5}));
  CHECK((*step)->supporters.size() == 4);
  CHECK((*step)->root == id128{9, 9});
}

TEST_CASE("chain: a certificate with any changed field proves nothing") {
  using change = std::function<void(round_certificate&)>;
  const std::vector<std::pair<const char*, change>> changes{
      {"epoch", [](auto& c) { ++c.roster.epoch; }},
      {"state", [](auto& c) { ++c.roster.state.low; }},
      {"group", [](auto& c) { ++c.roster.group.low; }},
      {"version", [](auto& c) { ++c.version.low; }},
      {"second", [](auto& c) { c.second = true; }},
      {"chunk bytes", [](auto& c) { ++c.roster.chunk_bytes; }},
      {"codec", [](auto& c) { ++c.roster.codec; }},
      {"split", [](auto& c) { ++c.roster.split; }},
      {"length", [](auto& c) { ++c.roster.value_count; }},
      {"attempt", [](auto& c) { ++c.roster.attempt; }},
      {"leader", [](auto& c) { c.roster.leader = 1; }},
      {"no such leader", [](auto& c) { c.roster.leader = 9; }},
      {"leader's signature", [](auto& c) { ++c.roster.by.s.a; }},
      {"peer", [](auto& c) { c.roster.members[3].peer += 9; }},
      {"weight", [](auto& c) { ++c.roster.members[0].weight; }},
      {"rate", [](auto& c) { ++c.roster.members[1].rate_up; }},
      {"takes", [](auto& c) { c.roster.members[1].takes = 0; }},
      {"samples",
       [](auto& c) {
         c.roster.members[2].samples.push_back({7, 1});
       }},
      {"key", [](auto& c) { ++c.roster.members[2].key.a; }},
      {"root", [](auto& c) { ++c.roster.members[2].state_root.low; }},
      {"address", [](auto& c) { c.roster.members[1].address = c.roster.members[0].address; }},
      {"member's signature", [](auto& c) { ++c.roster.members[1].by.r.a; }},
      {"a member less", [](auto& c) { c.roster.members.pop_back(); }},
      {"a member twice", [](auto& c) { c.roster.members.push_back(c.roster.members[0]); }},
      {"vote's signature", [](auto& c) { ++c.votes[0].by.r.a; }},
      {"another's vote", [](auto& c) { c.votes[0].by = c.votes[1].by; }},
      {"a vote twice", [](auto& c) { c.votes[3] = c.votes[2]; }},
      {"a vote of nobody", [](auto& c) { c.votes[3].member = 9; }},
      {"two votes of four", [](auto& c) { c.votes.resize(2); }},
      {"no members", [](auto& c) { c.roster.members.clear(); }},
  };
  lab t;
  const auto good = certify(t.members, initial, {5, 5}, {9, 9});
  REQUIRE(t.proves(good));
  for (const auto& [name, apply] : changes) {
    CAPTURE(name);
    auto bad = good;
    apply(bad);
    CHECK_FALSE(t.proves(bad));
  }
}

TEST_CASE("chain: the certificate of the first of two rounds proves no step") {
  lab t;
  auto first = certify(t.members, initial, {5, 5});
  first.roster.second_values = 10;
  sign(first, t.members);
  CHECK_FALSE(t.proves(first));
  auto second = first;
  second.second = true;
  sign(second, t.members);
  CHECK(t.proves(second));
}

TEST_CASE("chain: a root counts only if more than two thirds of the voters name it") {
  lab t;
  auto certificate = certify(t.members, initial, {5, 5}, {9, 9});
  certificate.roster.members[0].state_root = {8, 8};
  sign(certificate, t.members);
  auto step = prove(shared_copy(certificate), t.reader());
  REQUIRE(step.ok());
  CHECK((*step)->root == id128{9, 9});
  certificate.roster.members[1].state_root = {8, 8};
  sign(certificate, t.members);
  step = prove(shared_copy(certificate), t.reader());
  REQUIRE(step.ok());
  CHECK((*step)->root.is_zero());
}

TEST_CASE("chain pages: a chain comes in pages of limited size, and each page goes on where the "
          "former ended") {
  lab t(3);
  chain own(initial);
  for (std::uint64_t i = 0; i < 2 * most_page_steps + 5; ++i) {
    const auto step = step_of(shared_copy(certify(t.members, own.head(), {i, i})));
    REQUIRE(own.extend(step).ok());
  }
  std::vector<chain_point> locator{initial};
  std::size_t pages = 0;
  chain theirs(initial);
  for (bool more = true; more; ++pages) {
    const auto page = page_after(own, locator, t.reader());
    CHECK(sensible(page));
    CHECK(page.lacks == 0);
    CHECK(page.common == theirs.head());
    for (const auto& round : page.steps) {
      auto step = prove(certificate_of(round), t.reader());
      REQUIRE(step.ok());
      REQUIRE(theirs.extend(*step).ok());
    }
    more = page.more != 0;
    locator = {theirs.head()};
  }
  CHECK(pages == 3);
  CHECK(theirs.head() == own.head());
  const std::vector<chain_point> elsewhere{{3, {4, 4}}};
  CHECK(page_after(own, elsewhere, t.reader()).lacks == 1);
}

TEST_CASE("chain pages: a page that no peer sends is not sensible") {
  lab t(3);
  chain own(initial);
  REQUIRE(own.extend(step_of(shared_copy(certify(t.members, initial, {5, 5})))).ok());
  const std::vector<chain_point> locator{initial};
  const auto good = page_after(own, locator, t.reader());
  REQUIRE(sensible(good));
  auto page = good;
  page.steps.assign(most_page_steps + 1, good.steps[0]);
  CHECK_FALSE(sensible(page));
  page = good;
  page.steps[0].votes.resize(4);
  CHECK_FALSE(sensible(page));
  page = good;
  page.steps[0].declines.resize(4);
  CHECK_FALSE(sensible(page));
  page = good;
  page.steps[0].roster.members.resize(most_page_members);
  page.steps.push_back(page.steps[0]);
  CHECK_FALSE(sensible(page));
  page = good;
  page.admitted.resize(4);
  CHECK_FALSE(sensible(page));
  page = good;
  page.steps.clear();
  page.more = 1;
  CHECK_FALSE(sensible(page));
}
