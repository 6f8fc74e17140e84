#include "actors/trust/proof.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

struct court {
  mini_world world;
  mini_host &mallory = world.add_host("mallory"), &judge = world.add_host("judge");

  proof two_groups() {
    evidence out;
    out.kind = static_cast<std::uint8_t>(statement_kind::group);
    out.culprit = mallory.key();
    out.subject = {1, 2};
    out.first = {3, 4};
    out.second = {5, 6};
    out.first_by = mallory.sign(statement_about(statement_kind::group, out.subject, out.first));
    out.second_by = mallory.sign(statement_about(statement_kind::group, out.subject, out.second));
    return out;
  }
  signature_check check() {
    return [this](const key256& key, const digest& text, const signature& by) {
      return judge.is_signed_by(key, text, by);
    };
  }
};

} // namespace

TEST_CASE("a proof of any kind names its culprit and its deed, and can be checked") {
  court c;
  const auto what = c.two_groups();
  CHECK(culprit_of(what) == c.mallory.key());
  CHECK(meaning_of(what) == "two groups in one attempt to lead");
  CHECK(holds(what, c.check()));
  const auto said = statements_in(what);
  REQUIRE(said.size() == 2);
  CHECK(said[0] == "attempt 00000000000000010000000000000002 to lead has the group "
                   "00000000000000030000000000000004");
  CHECK(said[1] != said[0]);
}

TEST_CASE("a line of a proof begins with its kind, ends with its swarm, and is read back") {
  court c;
  const std::string swarm(64, 'a');
  const proof_in_swarm what{c.two_groups(), swarm};
  const auto line = to_line(what);
  CHECK(line.starts_with("group "));
  CHECK(line.ends_with(" swarm " + swarm));
  const auto read = proof_in_swarm_from(line);
  REQUIRE(read.ok());
  CHECK(*read == what);
  for (std::size_t cut = 0; cut < line.size(); cut += 5)
    CHECK_FALSE(proof_in_swarm_from(std::string_view(line).substr(0, cut)).ok());
  CHECK(proof_in_swarm_from("gossip" + line.substr(5)).error() ==
        "a proof begins with its kind, one of verdict, vote, group, part, "
        "commitment, checks");
}

TEST_CASE("the signatures of one swarm prove nothing in another one, and none in a simulation") {
  court c;
  const auto text = statement_about(statement_kind::vote, {1, 2}, {3, 4});
  CHECK(in_swarm("", text) != in_swarm(std::string(64, 'a'), text));
  CHECK(in_swarm(std::string(64, 'b'), text) != in_swarm(std::string(64, 'a'), text));
  // The stand-in signatures of a simulation are no Ed25519 signatures.
  CHECK_FALSE(holds(proof_in_swarm{c.two_groups(), ""}));
  CHECK_FALSE(holds(proof_in_swarm{c.two_groups(), std::string(64, 'a')}));
  CHECK(to_line(proof_in_swarm{c.two_groups(), ""}).ends_with(" swarm simulation"));
}
