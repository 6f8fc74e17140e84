#include "actors/trust/evidence.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

struct court {
  mini_world world;
  mini_host &mallory = world.add_host("mallory"), &judge = world.add_host("judge");

  signature_check check() {
    return [this](const key256& key, const digest& text, const signature& by) {
      return judge.is_signed_by(key, text, by);
    };
  }
  evidence two_votes() {
    evidence out;
    out.culprit = mallory.key();
    out.subject = {1, 2};
    out.first = {3, 4};
    out.second = {5, 6};
    out.first_by = mallory.sign(statement_about(statement_kind::vote, out.subject, out.first));
    out.second_by = mallory.sign(statement_about(statement_kind::vote, out.subject, out.second));
    return out;
  }
};

} // namespace

TEST_CASE("evidence: two signed votes in one round are a proof, and one vote twice is none") {
  court c;
  const auto proof = c.two_votes();
  CHECK(holds(proof, c.check()));
  CHECK(meaning(proof) == "two votes in one round");
  auto once = proof;
  once.second = once.first;
  once.second_by = once.first_by;
  CHECK(!holds(once, c.check()));
}

TEST_CASE("evidence: no field of a proof can be changed") {
  court c;
  const std::vector<std::function<void(evidence&)>> changes{
      [](evidence& x) { x.kind = 1; },
      [](evidence& x) { x.kind = 200; },
      [&](evidence& x) { x.culprit = c.judge.key(); },
      [](evidence& x) { ++x.subject.low; },
      [](evidence& x) { ++x.first.high; },
      [](evidence& x) { ++x.second.low; },
      [](evidence& x) { ++x.first_by.r.a; },
      [](evidence& x) { ++x.second_by.s.d; },
      [](evidence& x) { std::swap(x.first_by, x.second_by); }};
  for (const auto& change : changes) {
    auto forged = c.two_votes();
    change(forged);
    CHECK(!holds(forged, c.check()));
  }
}

TEST_CASE("evidence: a line of text has all of it, and a damaged line is refused") {
  court c;
  const auto proof = c.two_votes();
  const auto line = to_line(proof);
  const auto read = evidence_from_line(line);
  REQUIRE(read);
  CHECK(*read == proof);
  for (std::size_t cut = 0; cut < line.size(); cut += 7)
    CHECK(!evidence_from_line(std::string_view(line).substr(0, cut)));
  CHECK(!evidence_from_line("vote " + line.substr(6) + "0"));
}
