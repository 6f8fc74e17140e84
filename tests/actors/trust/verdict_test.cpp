#include "actors/trust/verdict.hpp"
#include "tests/actors/support/certificates.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

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
  std::string error(const verdict& what) {
    const auto fine = actors::check(what, check());
    return fine ? "" : fine.error();
  }
  void sign(verdict& what, const std::vector<std::uint32_t>& judges) {
    what.by.clear();
    for (const auto j : judges)
      what.by.push_back({j, members[j].on->sign(verdict_statement(what.roster.group, what.case_id,
                                                                  what.kind, what.culprit))});
  }
  verdict against(std::uint32_t culprit, const std::vector<std::uint32_t>& judges) {
    verdict out;
    out.roster = roster;
    out.accuser = 1;
    out.accused = 3;
    out.culprit = culprit;
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
  CHECK(c.against(3, {}).culprit_key() == c.members[3].on->key());
  CHECK(signatures_needed(7) == 4);
  CHECK(signatures_needed(8) == 4);
  CHECK(signatures_needed(16) == 8);
}

TEST_CASE("verdict: too few, repeated or partial judges ban nobody") {
  court c;
  CHECK(c.error(c.against(3, {0, 1, 2})).find("3 members of 7 signed it, but 4 are needed") !=
        std::string::npos);
  CHECK(c.error(c.against(3, {0, 1, 1, 2})).find("a member counts twice") != std::string::npos);
  CHECK(c.error(c.against(3, {0, 2, 1, 4})).find("a member counts twice") != std::string::npos);
  CHECK(c.error(c.against(3, {0, 1, 2, 3})).find("no judge of the case") != std::string::npos);
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
      {"no such accused", [](auto& x) { x.accused = x.culprit = 9; }},
      {"part", [](auto& x) { x.part = 1; }},
      {"culprit", [](auto& x) { x.culprit = 1; }},
      {"a judge less", [](auto& x) { x.by.pop_back(); }},
      {"no such judge", [](auto& x) { x.by[3].member = 7; }},
      {"another judge", [](auto& x) { x.by[3].member = 5; }},
      {"signature", [](auto& x) { ++x.by[2].by.r.a; }},
      {"signatures swapped", [](auto& x) { std::swap(x.by[0].by, x.by[1].by); }},
      {"group", [](auto& x) { ++x.roster.group.low; }},
      {"epoch", [](auto& x) { ++x.roster.epoch; }},
      {"roster's key", [](auto& x) { ++x.roster.members[3].key.a; }},
      {"roster's weight", [](auto& x) { ++x.roster.members[6].weight; }},
      {"leader's signature", [](auto& x) { ++x.roster.by.s.a; }}};
  for (const auto& [name, change] : changes) {
    auto bad = good;
    change(bad);
    CAPTURE(name);
    CHECK(c.error(bad) != "");
  }
  // Signatures under another kind of case are not signatures under this one.
  auto other = c.against(3, {0, 1, 2, 4});
  other.kind = static_cast<std::uint8_t>(case_kind::product);
  other.case_id = case_of(c.roster.group, case_kind::product, 1, 3, 0);
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
