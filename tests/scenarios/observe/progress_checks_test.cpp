#include "actors/training/observations.hpp"
#include "scenarios/observe/progress_checks.hpp"
#include "tests/scenarios/observe/helpers.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;
using actors::peer_phase;

namespace {

struct fixture {
  invariant monotonic, staleness, lineage;
  progress_checks checks{{.max_epoch_difference = 1, .staleness_allowed = 80s, .name_of = {}},
                         monotonic,
                         staleness,
                         lineage};

  void phase(duration time, actors::peer_id peer, peer_phase what, std::uint64_t epoch) {
    checks.phase_changed(time, peer, {what, epoch, state(epoch)});
  }
  void step(duration time, actors::peer_id peer, std::uint64_t epoch) {
    checks.stepped(time, peer, {epoch, state(epoch - 1), state(epoch), group(epoch)});
  }
};

} // namespace

TEST_CASE("epochs that rise step by step, and peers that do the same steps, violate nothing") {
  fixture f;
  for (const actors::peer_id peer : {1, 2, 3}) f.phase(0s, peer, peer_phase::computing, 0);
  for (std::uint64_t epoch = 1; epoch < 200; ++epoch) {
    for (const actors::peer_id peer : {1, 2, 3}) {
      f.phase(epoch * 10s, peer, peer_phase::averaging, epoch - 1);
      f.step(epoch * 10s, peer, epoch);
      f.phase(epoch * 10s, peer, peer_phase::computing, epoch);
    }
  }
  CHECK(f.checks.in_sync() == 3);
  CHECK(f.checks.highest_epoch() == 199);
  for (const invariant* one : {&f.monotonic, &f.staleness, &f.lineage}) {
    CHECK(one->checked >= 597);
    CHECK(one->violated == 0);
  }
}

TEST_CASE("epoch_monotonic is violated by a peer that goes back or steps where it is") {
  fixture f;
  f.phase(0s, 1, peer_phase::computing, 5);
  f.phase(1s, 1, peer_phase::computing, 4);
  CHECK(f.monotonic.violated == 1);
  CHECK(f.monotonic.first_violation ==
        "at 1.000000000 s: peer 1 computes at epoch 4 after epoch 5");
  fixture g;
  g.phase(0s, 1, peer_phase::computing, 5);
  g.checks.stepped(1s, 1, {5, state(5), state(6), group(6)});
  CHECK(g.monotonic.violated == 1);
  fixture h;
  h.phase(0s, 1, peer_phase::computing, 5);
  h.checks.contributed(1s, 1, contribution(4, 0, 1, {}, {1}));
  CHECK(h.monotonic.violated == 1);
}

TEST_CASE("staleness is violated by a peer that stays behind believing to be in sync") {
  fixture f;
  f.phase(0s, 1, peer_phase::computing, 0);
  f.phase(0s, 2, peer_phase::computing, 0);
  f.step(10s, 1, 1);
  f.checks.advance(200s);
  CHECK(f.staleness.violated == 0); // one epoch is allowed
  f.step(210s, 1, 2);
  f.checks.advance(280s);
  CHECK(f.staleness.violated == 0); // not yet for too long
  f.checks.advance(310s);
  CHECK(f.staleness.violated == 1);
  f.checks.advance(400s);
  CHECK(f.staleness.violated == 1); // once
  CHECK(f.staleness.first_violation.find("peer 2 is in sync at epoch 0 while others lead at 2") !=
        std::string::npos);
}

TEST_CASE("staleness is not judged after the peers were told to leave") {
  for (const bool early : {true, false}) {
    fixture f;
    f.phase(0s, 1, peer_phase::computing, 0);
    f.phase(0s, 2, peer_phase::computing, 0);
    f.step(10s, 1, 1);
    f.step(20s, 1, 2);
    f.checks.advance(30s);
    f.checks.ending(early ? 40s : 110s);
    f.checks.advance(500s);
    CHECK(f.staleness.violated == (early ? 0 : 1));
  }
}

TEST_CASE("state_lineage does not judge what donors may invent") {
  for (const bool may_lie : {true, false}) {
    invariant monotonic, staleness, lineage;
    progress_checks checks{
        {.donors_may_lie = may_lie, .name_of = {}}, monotonic, staleness, lineage};
    checks.phase_changed(0s, 1, {peer_phase::computing, 0, state(0)});
    checks.stepped(10s, 1, {1, state(0), state(1), group(1)});
    checks.adopted(20s, 2, {1, state(99), 100});
    CHECK(lineage.violated == (may_lie ? 0 : 1));
    // A step from an unknown state is judged all the same.
    checks.stepped(30s, 1, {2, state(50), state(2), group(2)});
    CHECK(lineage.violated == (may_lie ? 1 : 2));
  }
}

TEST_CASE(
    "staleness holds when a peer that is behind downloads, dies, or has only just come back") {
  fixture f;
  for (const actors::peer_id peer : {1, 2, 3, 4}) f.phase(0s, peer, peer_phase::computing, 0);
  f.step(10s, 1, 1);
  f.step(20s, 1, 2);
  f.phase(50s, 2, peer_phase::downloading, 0);
  f.checks.left(50s, 3);
  f.phase(50s, 4, peer_phase::downloading, 0);
  f.phase(200s, 4, peer_phase::computing, 0); // the peer's download failed; it will try again
  f.checks.advance(270s);
  CHECK(f.staleness.violated == 0);
  f.checks.advance(300s);
  CHECK(f.staleness.violated == 1);
}

TEST_CASE("staleness is violated by two peers that stay on different branches of one epoch, where "
          "there has to be one") {
  for (const bool one_branch : {true, false}) {
    invariant monotonic, staleness, lineage;
    progress_checks checks{{.max_epoch_difference = 1,
                            .staleness_allowed = 80s,
                            .one_branch = one_branch,
                            .name_of = {}},
                           monotonic,
                           staleness,
                           lineage};
    // Each took a step of its own, as after a partition; the third one went over to the other
    // branch in time.
    for (const actors::peer_id peer : {1, 2, 3}) {
      checks.phase_changed(0s, peer, {peer_phase::computing, 0, state(0)});
      checks.stepped(10s, peer, {1, state(0), state(100 + peer), group(100 + peer)});
      checks.phase_changed(10s, peer, {peer_phase::computing, 1, state(100 + peer)});
    }
    checks.phase_changed(60s, 3, {peer_phase::downloading, 1, state(103)});
    checks.adopted(61s, 3, {1, state(101), 100});
    checks.phase_changed(61s, 3, {peer_phase::computing, 1, state(101)});
    checks.advance(85s);
    CHECK(staleness.violated == 0);
    checks.advance(120s);
    checks.advance(300s);
    CHECK(staleness.violated == (one_branch ? 1 : 0)); // once
    if (one_branch)
      CHECK(staleness.first_violation.find(
                "peer 1 and peer 2 are in sync at epoch 1 on different branches") !=
            std::string::npos);
  }
}

TEST_CASE("staleness is counted from when a cut is over that is no small part of what is allowed") {
  for (const auto cut : {10s, 100s}) {
    invariant monotonic, staleness, lineage;
    progress_checks checks{
        {.max_epoch_difference = 1, .staleness_allowed = 80s, .longest_cut = cut, .name_of = {}},
        monotonic,
        staleness,
        lineage};
    checks.phase_changed(0s, 1, {peer_phase::computing, 0, state(0)});
    checks.phase_changed(0s, 2, {peer_phase::computing, 0, state(0)});
    checks.cut(5s);
    checks.stepped(10s, 1, {1, state(0), state(1), group(1)});
    checks.stepped(20s, 1, {2, state(1), state(2), group(2)});
    checks.advance(150s);
    CHECK(staleness.violated == (cut == 10s ? 1 : 0));
    checks.advance(200s);
    CHECK(staleness.violated == 1);
  }
}

TEST_CASE("staleness is counted anew when the leader is gone") {
  fixture f;
  f.phase(0s, 1, peer_phase::computing, 0);
  f.phase(0s, 2, peer_phase::computing, 0);
  f.step(10s, 1, 1);
  f.step(20s, 1, 2);
  f.checks.left(30s, 1);
  f.checks.advance(500s);
  CHECK(f.staleness.violated == 0);
}

TEST_CASE("state_lineage is violated by one state of two origins, or two states of one round") {
  fixture f;
  f.phase(0s, 1, peer_phase::computing, 0);
  f.phase(0s, 2, peer_phase::computing, 0);
  f.step(1s, 1, 1);
  f.checks.stepped(1s, 2, {1, state(0), state(1), group(77)});
  CHECK(f.lineage.violated == 1);

  fixture g;
  g.phase(0s, 1, peer_phase::computing, 0);
  g.phase(0s, 2, peer_phase::computing, 0);
  g.step(1s, 1, 1);
  g.checks.stepped(1s, 2, {1, state(0), state(99), group(1)});
  CHECK(g.lineage.violated == 1);
}

TEST_CASE("state_lineage is violated by a round of two branches, where there has to be one") {
  for (const bool one_branch : {false, true})
    for (const bool apart : {false, true}) {
      CAPTURE(one_branch);
      CAPTURE(apart);
      invariant monotonic, staleness, lineage;
      progress_checks checks{
          {.one_branch = one_branch, .name_of = {}}, monotonic, staleness, lineage};
      checks.phase_changed(1s, 1, {peer_phase::computing, 4, state(4)});
      checks.phase_changed(1s, 2, {peer_phase::computing, 4, state(apart ? 44 : 4)});
      checks.phase_changed(1s, 3, {peer_phase::computing, 5, state(5)});
      for (const actors::peer_id peer : {1, 2})
        checks.contributed(2s, peer,
                           contribution(4, static_cast<std::uint32_t>(peer), 3, {{peer, 1}}, {1}));
      CHECK(lineage.violated == (one_branch && apart ? 1 : 0));
      if (one_branch && apart)
        CHECK(lineage.first_violation.find("peer 1 and peer 2 contribute to group") !=
              std::string::npos);
    }
}

TEST_CASE("state_lineage is violated by a step from elsewhere and by adopting what nobody had") {
  fixture f;
  f.phase(0s, 1, peer_phase::computing, 0);
  f.checks.stepped(1s, 1, {1, state(50), state(1), group(1)});
  CHECK(f.lineage.violated == 1);
  f.checks.adopted(2s, 2, {1, state(1), 100});
  CHECK(f.lineage.violated == 1);
  f.checks.adopted(3s, 3, {1, state(51), 100});
  CHECK(f.lineage.violated == 2);
}

TEST_CASE("state_lineage counts the state that an attacker has, and no other that it offers") {
  fixture f;
  f.phase(0s, 1, peer_phase::computing, 0);
  f.checks.not_judged(0s, 2);
  // A round that the attacker skips raises its epoch, and nobody else has this state then.
  f.phase(1s, 2, peer_phase::computing, 3);
  f.checks.adopted(2s, 3, {3, state(3), 100});
  CHECK(f.lineage.violated == 0);
  f.checks.adopted(3s, 4, {3, state(51), 100});
  CHECK(f.lineage.violated == 1);
  // The attacker gives this state up.
  f.phase(4s, 2, peer_phase::downloading, 4);
  f.checks.adopted(5s, 5, {4, state(4), 100});
  CHECK(f.lineage.violated == 2);
}
