#include "actors/dht/dht_node.hpp"
#include "actors/trust/known_groups.hpp"
#include "actors/trust/proof.hpp"
#include "actors/trust/verdict.hpp"
#include "tests/actors/support/certificates.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

/// A group whose member 1 has accused member 3 of a false gradient.
struct court {
  using silent = collector<join_request>;
  mini_world world;
  std::vector<signer> members;
  group_begun roster;

  explicit court(std::size_t count = 7) {
    for (std::size_t i = 0; i < count; ++i) {
      auto& host = world.add_host("m" + std::to_string(i));
      members.push_back({&host, world.spawn<silent>(host, std::make_shared<silent::log>()), 1});
    }
    std::sort(members.begin(), members.end(),
              [](const signer& a, const signer& b) { return a.on->id() < b.on->id(); });
    roster = certify(members, {4, {1, 1}}, {2, 2}).roster;
  }
  signature_check check() {
    return [this](const key256& key, const digest& text, const signature& by) {
      return members[0].on->is_signed_by(key, text, by);
    };
  }
  std::vector<key256> keys() const {
    std::vector<key256> out;
    for (const auto& one : members) out.push_back(one.on->key());
    return out;
  }
  std::string error(const verdict& what) {
    const auto fine = actors::check(what, keys(), check());
    return fine ? "" : fine.error();
  }
  void sign(verdict& what, const std::vector<std::uint32_t>& judges) {
    what.by.clear();
    for (const auto j : judges)
      what.by.push_back({members[j].on->key(),
                         members[j].on->sign(verdict_statement(what.group, what.case_id, what.kind,
                                                               what.members, what.culprit))});
    std::sort(what.by.begin(), what.by.end(),
              [](const judge& a, const judge& b) { return a.key < b.key; });
  }
  verdict against(std::uint32_t culprit, const std::vector<std::uint32_t>& judges) {
    verdict out;
    out.group = roster.group;
    out.members = static_cast<std::uint32_t>(members.size());
    out.accuser = 1;
    out.accused = 3;
    out.culprit = members[culprit].on->key();
    out.case_id = case_of(roster.group, case_kind::gradient, 1, 3, 0);
    sign(out, judges);
    return out;
  }
};

} // namespace

TEST_CASE("verdict: more than half of the others ban the accused or the accuser") {
  court c;
  CHECK(c.error(c.against(3, {0, 1, 2, 4})) == "");
  CHECK(c.error(c.against(1, {0, 2, 3, 4, 5, 6})) == "");
  CHECK(signatures_needed(7) == 4);
  CHECK(signatures_needed(8) == 4);
  CHECK(signatures_needed(16) == 8);
}

TEST_CASE("verdict: too few, repeated or partial judges ban nobody") {
  court c;
  CHECK(c.error(c.against(3, {0, 1, 2})).find("3 members of 7 signed it, but 4 are needed") !=
        std::string::npos);
  CHECK(c.error(c.against(3, {0, 1, 1, 2})).find("a member counts twice") != std::string::npos);
  CHECK(c.error(c.against(3, {0, 2, 2, 4})).find("a member counts twice") != std::string::npos);
  CHECK(c.error(c.against(3, {0, 1, 2, 3})).find("the culprit signed it") != std::string::npos);
  CHECK(c.error(c.against(4, {0, 1, 2, 3})).find("neither the accuser") != std::string::npos);
  // One member of a group of two could ban the other.
  court two(2);
  auto alone = two.against(1, {0});
  alone.accuser = 0;
  alone.accused = 1;
  CHECK(two.error(alone).find("a group of 2 has no judges") != std::string::npos);
  CHECK(two.error({}).find("a group of 0 has no judges") != std::string::npos);
}

TEST_CASE("verdict: no field of a verdict can be changed") {
  court c;
  const auto good = c.against(3, {0, 1, 2, 4});
  REQUIRE(c.error(good) == "");
  const std::vector<std::pair<const char*, std::function<void(verdict&)>>> changes{
      {"case", [](auto& x) { ++x.case_id.low; }},
      {"kind", [](auto& x) { x.kind = 1; }},
      {"no such kind", [](auto& x) { x.kind = 200; }},
      {"accuser", [](auto& x) { x.accuser = 0; }},
      {"no such accuser", [](auto& x) { x.accuser = 7; }},
      {"accused", [](auto& x) { x.accused = 4; }},
      {"no such accused", [](auto& x) { x.accused = 9; }},
      {"part", [](auto& x) { x.part = 1; }},
      {"culprit", [](auto& x) { ++x.culprit.a; }},
      {"a judge less", [](auto& x) { x.by.pop_back(); }},
      {"another judge", [](auto& x) { ++x.by[3].key.d; }},
      {"number of members", [](auto& x) { ++x.members; }},
      {"signature", [](auto& x) { ++x.by[2].by.r.a; }},
      {"signatures swapped", [](auto& x) { std::swap(x.by[0].by, x.by[1].by); }},
      {"group", [](auto& x) { ++x.group.low; }}};
  for (const auto& [name, change] : changes) {
    auto bad = good;
    change(bad);
    CAPTURE(name);
    CHECK(c.error(bad) != "");
  }
  // Signatures under another kind of case are not signatures under this one.
  auto other = c.against(3, {0, 1, 2, 4});
  other.kind = static_cast<std::uint8_t>(case_kind::product);
  other.case_id = case_of(other.group, case_kind::product, 1, 3, 0);
  CHECK(c.error(other).find("did not sign it") != std::string::npos);
  c.sign(other, {0, 1, 2, 4});
  CHECK(c.error(other) == "");
}

TEST_CASE("verdict: each case has its own id and kinds have names") {
  const group_id g{1, 2};
  const auto one = case_of(g, case_kind::product, 1, 2, 3);
  for (const auto& other :
       {case_of({1, 3}, case_kind::product, 1, 2, 3), case_of(g, case_kind::gradient, 1, 2, 3),
        case_of(g, case_kind::product, 2, 1, 3), case_of(g, case_kind::product, 1, 2, 4)})
    CHECK(one != other);
  CHECK(name_of(case_kind::gradient) == "gradient");
  CHECK(name_of(case_kind::poisoned) == "poisoned");
}

TEST_CASE("verdict: a host believes a verdict only about a group that it knows") {
  court c;
  known_groups groups;
  const auto against = c.against(3, {0, 1, 2, 4});
  CHECK(groups.examine(against, c.check()) == ban_result::later);
  // A judge that is no member.
  auto others = c.keys();
  ++others[0].a;
  known_groups without_judge;
  without_judge.remember(against.group, others);
  CHECK(without_judge.examine(against, c.check()) == ban_result::wrong);
  // The culprit is a member, but neither accuser nor accused.
  others = c.keys();
  std::swap(others[3], others[5]);
  known_groups swapped;
  swapped.remember(against.group, others);
  CHECK(swapped.examine(against, c.check()) == ban_result::wrong);
  groups.remember({7, 7}, c.keys());
  CHECK(groups.examine(against, c.check()) == ban_result::later);
  groups.remember(against.group, c.keys());
  CHECK(groups.examine(against, c.check()) == ban_result::banned);
  auto forged = against;
  ++forged.by[0].by.r.a;
  CHECK(groups.examine(forged, c.check()) == ban_result::wrong);
}

TEST_CASE("verdict: a host that learns of the group later bans, and tells the others") {
  court c;
  const auto node = [&](std::size_t m, std::vector<caf::actor> bootstraps) {
    dht_config config;
    config.bootstraps = std::move(bootstraps);
    auto made = c.world.spawn<dht_node>(*c.members[m].on, config);
    c.world.run_for(5s);
    return made;
  };
  const auto first = node(0, {}), second = node(2, {first});
  const auto against = c.against(3, {0, 1, 2, 4});
  const auto culprit = member_of(against.culprit);
  c.members[2].on->remember_group(against.group, c.keys());
  for (int i = 0; i < 2; ++i) caf::send_as(c.members[1].address, first, against);
  c.world.run_for(1min);
  CHECK_FALSE(c.members[0].on->is_banned(culprit));
  c.members[0].on->remember_group(against.group, c.keys());
  c.world.run_for(1min);
  CHECK(c.members[0].on->is_banned(culprit));
  CHECK(c.members[2].on->is_banned(culprit));
  CHECK(c.world.observed<misbehaved>().empty());
}

TEST_CASE("verdict: its line is read back, and a changed line is refused or proves nothing") {
  court c;
  const auto one = c.against(3, {0, 1, 2, 4});
  const auto line = to_line(one);
  const auto read = verdict_from_line(line);
  REQUIRE(read.ok());
  CHECK(*read == one);
  for (std::size_t cut = 0; cut < line.size(); cut += 11) {
    const auto part = verdict_from_line(std::string_view(line).substr(0, cut));
    CHECK((!part || !check(*part, c.check())));
  }
  CHECK(proof_from_line(line).value() == proof{one});
}
