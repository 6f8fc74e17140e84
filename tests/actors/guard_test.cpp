// Byzantine-tolerant rounds through real group actors: one attack each on the values and on the
// protocol. Exactly the attacker is convicted, and never because it was absent.
#include "actors/averaging/aggregator.hpp"
#include "actors/averaging/guard_statements.hpp"
#include "actors/probes.hpp"
#include "tests/actors/support/guarded_rounds.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

using members_set = std::set<std::size_t>;

conduct_options attack_of(std::string kind, double strength = 1) {
  conduct_options out;
  out.kind = std::move(kind);
  out.strength = strength;
  return out;
}

/// A group of `size`, of which member `attacker` has this attack.
void fill(guarded_rounds& f, std::uint32_t size, std::uint32_t attacker,
          const conduct_options& attack) {
  for (std::uint32_t m = 0; m < size; ++m)
    f.add_random(m + 1, 40, m == attacker ? attack : conduct_options{});
}

std::size_t count_audits(const guarded_rounds& f, std::uint32_t target, bool right) {
  std::size_t out = 0;
  for (const auto& [who, what] : f.world.observed<audited>())
    out += what.target == target && what.right == right ? 1 : 0;
  return out;
}

} // namespace

TEST_CASE("an honest round with a guard has the bits of a plain one, and nobody is accused") {
  guarded_rounds guarded;
  guarded.guard.validators = 3;
  fill(guarded, 5, 5, {});
  guarded.run();

  guarded_rounds plain;
  plain.guarded = false;
  fill(plain, 5, 5, {});
  plain.run();

  for (std::size_t m = 0; m < 5; ++m) {
    REQUIRE(guarded.result(m).outcome == outcome::ok);
    const auto a = guarded.result(m).values, b = plain.result(m).values;
    CHECK(std::memcmp(a.bytes().data(), b.bytes().data(), a.size()) == 0);
  }
  CHECK(guarded.world.observed<committed>().size() == 5);
  const auto planned = guarded.world.observed<audit_planned>();
  CHECK(planned.size() >= 1);
  const auto audits = guarded.world.observed<audited>();
  CHECK(audits.size() == planned.size());
  for (const auto& [who, what] : audits) CHECK(what.right);
  CHECK(guarded.world.observed<accused_member>().empty());
  CHECK(guarded.convicted().empty());
  CHECK(guarded.failed().empty());
  CHECK(guarded.group_actors_have_ended());
  for (const auto& [who, what] : guarded.world.observed<distances>())
    for (const auto norm : what.norms) CHECK(norm > 0);
}

TEST_CASE("a member whose audited gradient is false is convicted by all others, and nobody else") {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    guarded_rounds f(seed);
    f.guard.validators = 2;
    fill(f, 6, 2, attack_of("flipped_signs"));
    f.run();
    const auto hits = count_audits(f, 2, false);
    CHECK(count_audits(f, 2, true) == 0);
    found += hits;
    CHECK(f.convicted() == (hits > 0 ? members_set{2} : members_set{}));
    CHECK(f.verdicts_against(2) >= (hits > 0 ? 5 : 0));
    CHECK(f.failed().empty());
    CHECK(f.group_actors_have_ended());
  }
  CHECK(found > 0);
}

TEST_CASE("a contribution far from the rest is computed again in the same round") {
  std::size_t convicted = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    guarded_rounds f(seed);
    f.guard.validators = 1;
    f.config.aggregator = aggregators().find("centered_clip");
    f.config.aggregation = {{"radius", 1.0}, {"batch", 1.0}};
    fill(f, 6, 2, attack_of("flipped_signs", 50));
    f.run();
    for (const auto& [who, what] : f.world.observed<audited>())
      CHECK(what.right == (what.target != 2));
    convicted += f.convicted() == members_set{2} ? 1 : 0;
    CHECK((f.convicted().empty() || f.convicted() == members_set{2}));
    CHECK(f.failed().empty());
    CHECK(f.group_actors_have_ended());
  }
  CHECK(convicted == 12);
}

TEST_CASE("values without bits are audited too") {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    guarded_rounds f(seed);
    f.guard.validators = 3;
    for (std::uint32_t m = 0; m < 5; ++m)
      f.add(m + 1, payload::size_only(160),
            m == 1 ? attack_of("flipped_signs") : conduct_options{});
    f.run();
    for (std::size_t m = 0; m < 5; ++m) CHECK(f.result(m).succeeded());
    const auto hits = count_audits(f, 1, false);
    found += hits;
    CHECK(f.convicted() == (hits > 0 ? members_set{1} : members_set{}));
  }
  CHECK(found > 0);
}

TEST_CASE("each attack on the protocol convicts its member, and no other") {
  struct row {
    const char* kind;
    double strength;
  };
  for (const auto& [kind, strength] : {row{"wrong_products", 0.5}, row{"false_means", 0.01},
                                       row{"equivocating_commitments", 1}, row{"false_accuser", 1}})
    for (const std::uint32_t attacker : {0u, 3u}) {
      CAPTURE(kind);
      CAPTURE(attacker);
      guarded_rounds f(attacker + 1);
      fill(f, 5, attacker, attack_of(kind, strength));
      f.run();
      CHECK(f.convicted() == members_set{attacker});
      CHECK(f.group_actors_have_ended());
      for (std::size_t m = 0; m < 5; ++m)
        if (m != attacker) CHECK(f.result(m).succeeded());
    }
}

TEST_CASE("a validator that finds honest gradients wrong is convicted") {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    guarded_rounds f(seed);
    f.guard.validators = 2;
    fill(f, 5, 4, attack_of("framing_validator"));
    f.run();
    bool drawn = false;
    for (const auto& [who, what] : f.world.observed<audit_planned>()) drawn |= what.validator == 4;
    found += drawn ? 1 : 0;
    CHECK(f.convicted() == (drawn ? members_set{4} : members_set{}));
  }
  CHECK(found > 0);
}

TEST_CASE("colluding validators hide an attacker from their own audits and from no others") {
  std::size_t hidden = 0, found = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    CAPTURE(seed);
    guarded_rounds f(seed);
    f.guard.validators = 3;
    const std::map<std::uint32_t, const char*> attacks{
        {2, "flipped_signs"}, {4, "colluding_validator"}, {5, "colluding_validator"}};
    for (std::uint32_t m = 0; m < 7; ++m)
      f.add_random(m + 1, 40, attacks.contains(m) ? attack_of(attacks.at(m)) : conduct_options{});
    f.run();
    bool by_honest = false, by_colluder = false;
    for (const auto& [who, what] : f.world.observed<audit_planned>()) {
      if (what.target != 2) continue;
      (what.validator == 4 || what.validator == 5 ? by_colluder : by_honest) = true;
    }
    hidden += by_colluder && !by_honest ? 1 : 0;
    found += by_honest ? 1 : 0;
    // As jurors, two colluders of seven change no verdict.
    CHECK(f.convicted() == (by_honest ? members_set{2} : members_set{}));
    CHECK(f.failed().empty());
  }
  CHECK(hidden > 0);
  CHECK(found > 0);
}

TEST_CASE("withheld openings neither save a false reducer nor convict the member that withholds") {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    CAPTURE(seed);
    guarded_rounds f(seed);
    for (std::uint32_t m = 0; m < 6; ++m)
      f.add_random(m + 1, 40,
                   m == 1   ? attack_of("false_means", 0.01)
                   : m == 3 ? attack_of("withheld_openings")
                            : conduct_options{});
    f.run();
    CHECK(f.convicted() == members_set{1});
    CHECK(f.group_actors_have_ended());
  }
}

TEST_CASE("silence convicts nobody: it is a failed duty") {
  for (const auto* kind : {"withheld_secret", "idle_validator"}) {
    CAPTURE(kind);
    std::size_t seen = 0;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      guarded_rounds f(seed);
      f.guard.validators = 2;
      fill(f, 5, 1, attack_of(kind));
      f.run();
      CHECK(f.convicted().empty());
      CHECK(f.group_actors_have_ended());
      const auto failed = f.failed();
      CHECK((failed.empty() || failed == members_set{1}));
      seen += failed.size();
    }
    CHECK(seen > 0);
  }
}

TEST_CASE("a member that dies at any point of a guarded round is not convicted") {
  for (const auto point : {probes::group_begun, probes::first_part_sent, probes::first_reduced,
                           probes::voted, probes::before_commit})
    for (const std::size_t who : {0u, 2u}) {
      CAPTURE(point);
      CAPTURE(who);
      guarded_rounds f;
      f.guard.validators = 3;
      fill(f, 5, 5, {});
      f.world.on_probe = [&](mini_host& host, std::string_view at) {
        if (&host == f.members[who].host && at == point) host.kill();
      };
      f.run();
      CHECK(f.convicted().empty());
      CHECK(f.world.observed<accused_member>().empty());
      for (std::size_t m = 0; m < 5; ++m)
        if (m != who) CHECK(f.result(m).succeeded());
    }
}

TEST_CASE("the statements of a round are told apart") {
  const payload a{std::vector<float>{1, 2}}, b{std::vector<float>{1, 3}};
  CHECK(hash_of_chunk(a) == hash_of_chunk(payload{std::vector<float>{1, 2}}));
  CHECK(hash_of_chunk(a) != hash_of_chunk(b));
  const auto empty = payload::size_only(8);
  CHECK(hash_of_chunk(empty) != hash_of_chunk(a));
  CHECK(hash_of_chunk(empty) != hash_of_chunk(payload::size_only(12)));
  CHECK(hash_of_chunk(empty) != hash_of_chunk(empty, true));
  const id128 x = hash_of_chunk(a), y = hash_of_chunk(b);
  const id128 both[] = {x, y}, other[] = {y, x};
  CHECK(hash_of_chunks(both) != hash_of_chunks(other));
  CHECK(hash_of_chunks(both) != root_of_part(both));
  round_commitment first{{1, 2}, 0, {x}, {{5, 1}}, {3, 4}, {}};
  auto second = first;
  CHECK(content_of(first) == content_of(second));
  second.blocks = {{5, 2}};
  CHECK(content_of(first) != content_of(second));
  second = first;
  second.member = 1;
  CHECK(content_of(first) != content_of(second));
  second = first;
  second.parts.push_back(y);
  CHECK(content_of(first) != content_of(second));
}
