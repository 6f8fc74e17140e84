// Conducts: the registry, the effect of each injected bug at its hook, and a conduct in a round of
// group actors.
#include "actors/averaging/observations.hpp"
#include "actors/averaging/round.hpp"
#include "actors/conduct/bugs_in_averaging.hpp"
#include "actors/conduct/bugs_in_records.hpp"
#include "actors/conduct/bugs_in_training.hpp"
#include "actors/conduct/conduct.hpp"
#include "actors/conduct/conducts.hpp"
#include "tests/actors/support/group_fixture.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

/// An attack, as another file could define it.
struct sign_flip final : conduct {
  void contribute(payload& values, const round_request&) override {
    std::vector<float> flipped(values.floats().begin(), values.floats().end());
    for (float& x : flipped) x = -x;
    values = payload{std::move(flipped)};
  }
};

std::vector<float> reduced_by(conduct& how, std::vector<float> values) {
  how.reduced({values, 6, 12, 2});
  return values;
}

} // namespace

TEST_CASE("conducts are found by name: the honest one is first, and all others say what they do") {
  const auto& all = conducts().all();
  REQUIRE(!all.empty());
  CHECK(all.front().name == "honest");
  std::size_t bugs = 0;
  for (const auto& one : all) {
    CHECK(conducts().find(one.name) == &one);
    CHECK(!one.meaning.empty());
    bugs += one.kind == conduct_kind::bug ? 1 : 0;
  }
  CHECK(bugs == 15);
  CHECK(conducts().find("honset") == nullptr);
}

TEST_CASE("each host gets a conduct object of its own, except for honest ones") {
  mini_world world;
  auto &a = world.add_host("a"), &b = world.add_host("b");
  CHECK(make_conduct("honest", a) == honest_conduct());
  CHECK(make_conduct("lone_vote", a) != make_conduct("lone_vote", b));
}

TEST_CASE("the honest conduct changes nothing") {
  auto& honest = *honest_conduct();
  CHECK(honest.weight_of(1, 2.5) == 2.5);
  CHECK(reduced_by(honest, {1, 2}) == std::vector<float>{1, 2});
  CHECK(honest.votes_needed(3) == 3);
  CHECK(honest.follows({2, 0, {}}, {1, 0, {}}));
  CHECK(!honest.stays_in_group());
  CHECK(!honest.reuses_gradients());
  CHECK(!honest.gives_expired_records());
  std::vector<ledger_row> rows(3), room;
  CHECK(honest.rows_to_apply(rows, room).data() == rows.data());
}

TEST_CASE("bugs of reducers divide by other numbers than the weight of the senders") {
  wrong_denominator group;
  CHECK(reduced_by(group, {2, -4}) == std::vector<float>{1, -2});
  divide_by_peers peers;
  CHECK(reduced_by(peers, {2, -4}) == std::vector<float>{6, -12});
  equal_weights equal;
  CHECK(equal.weight_of(3, 17) == 1);
}

TEST_CASE("bugs of trainers: branches, samples and jobs") {
  const branch old{5, 0, {}}, near{7, 0, {}}, far{9, 0, {}};
  stale_state stale;
  CHECK(stale.follows(old, old));
  CHECK(!stale.follows(near, old));
  CHECK(stale.follows(far, old));
  split_branch split;
  CHECK(!split.follows(old, old));
  CHECK(split.follows(near, old));
  lost_sample lost;
  std::vector<sample_range> samples{{10, 2}, {20, 1}};
  lost.count_samples(samples, false);
  CHECK(samples.size() == 2);
  lost.count_samples(samples, true);
  REQUIRE(samples.size() == 1);
  lost.count_samples(samples, true);
  CHECK(samples.back().count == 1);
  throwing_gradient gradient;
  CHECK_NOTHROW(gradient.before_gradient(0));
  CHECK_THROWS(gradient.before_gradient(1));
  throwing_step step;
  CHECK_NOTHROW(step.before_step(0));
  CHECK_THROWS(step.before_step(1));
}

TEST_CASE("a backup that forgets commits applies all other rows") {
  forgotten_commit forgets;
  std::vector<ledger_row> rows(3), room;
  rows[1].what = static_cast<std::uint8_t>(ledger_row_kind::committed);
  CHECK(forgets.rows_to_apply(rows, room).size() == 2);
}

TEST_CASE("a member with a conduct of its own gives other values, and all agree on the result") {
  group_fixture f;
  f.add(1, std::vector<float>(40, 2));
  f.add(1, std::vector<float>(40, 4));
  f.config.conduct = std::make_shared<sign_flip>();
  f.add(2, std::vector<float>(40, 3));
  f.run();
  for (std::size_t m = 0; m < 3; ++m) {
    CHECK(f.result(m).outcome == outcome::ok);
    for (const float x : f.result(m).values.floats()) CHECK(x == 0); // (2 + 4 - 2 * 3) / 4
  }
  // Observers see the contribution that the member sent, so the mass of the round is conserved.
  std::set<float> given;
  for (const auto& [who, what] : f.world.observed<contributed>())
    given.insert(what.values.floats()[0]);
  CHECK(given == std::set<float>{-3, 2, 4});
}
