#include "actors/data/observations.hpp"
#include "actors/data/shard_record.hpp"
#include "actors/training/observations.hpp"
#include "scenarios/observe/sample_book.hpp"
#include "tests/scenarios/observe/helpers.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;
using actors::outcome;
using actors::reason;
using actors::sample_state;

namespace {

/// Two peers (100, 101) that train and average one epoch after the other.
struct fixture {
  bool takeovers = false;
  bool computes_meanwhile = false;
  /// Parameters are averaged, not gradients: each member has a state of its own.
  bool averaged = false;
  bool commits_may_lie = false;
  invariant check{};
  sample_book book{{.lease_time = 60s,
                    .settle_time = 30s,
                    .weights_are_samples = !averaged,
                    .computes_meanwhile = computes_meanwhile,
                    .name_of = {},
                    .is_honest = [](actors::peer_id peer) { return peer != 666; },
                    .takeovers = takeovers,
                    .one_branch = !averaged,
                    .commits_may_lie = commits_may_lie},
                   check};
  round_book rounds{[this](const swarm_round& what) { book.round_final(what); }};
  duration now = 1s;

  void lease(actors::peer_id peer, std::vector<sample_range> ranges) {
    move(sample_state::leased, peer, std::move(ranges));
  }
  void move(sample_state to, actors::peer_id peer, std::vector<sample_range> ranges) {
    actors::samples_moved what;
    what.to = to;
    what.peer = peer;
    what.samples = std::move(ranges);
    book.moved(now, what);
  }
  void train(actors::peer_id peer, std::vector<sample_range> ranges) {
    book.computed(now, peer, {0, std::move(ranges), 1.0});
  }
  void contribute(std::uint64_t epoch, actors::peer_id peer, std::vector<sample_range> ranges) {
    const auto what =
        contribution(epoch, static_cast<std::uint32_t>(peer - 100), 2, std::move(ranges), {1});
    book.contributed(now, peer, what);
    rounds.contributed(now, peer, what);
  }
  void end(std::uint64_t epoch, outcome how, std::vector<std::uint32_t> senders = {0, 1}) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      const auto what =
          ending(epoch, i, 2, how, how == outcome::ok ? reason::none : reason::reducer_lost,
                 {{0, 1, senders, 0}}, {1});
      book.round_ended(now, 100 + i, what);
      rounds.ended(now, 100 + i, what);
    }
  }
  /// A round of `peer` alone, from the lease to its end, and a while.
  void alone(std::uint64_t epoch, actors::peer_id peer, const std::vector<sample_range>& ranges) {
    lease(peer, ranges), train(peer, ranges);
    const auto gave = contribution(epoch, 0, 1, ranges, {1});
    book.contributed(now, peer, gave), rounds.contributed(now, peer, gave);
    const auto ended = ending(epoch, 0, 1, outcome::ok, reason::none, {{0, 1, {0}, 0}}, {1});
    book.round_ended(now, peer, ended), rounds.ended(now, peer, ended);
    now += 100s;
  }
  /// A whole correct epoch with the samples 20 * epoch ..
  void epoch(std::uint64_t n) {
    const std::vector<sample_range> a{{20 * n, 12}}, b{{20 * n + 12, 8}};
    lease(100, a), lease(101, b);
    train(100, a), train(101, b);
    contribute(n, 100, a), contribute(n, 101, b);
    end(n, outcome::ok);
    move(sample_state::committed, 100, a), move(sample_state::committed, 101, b);
    now += 10s;
  }
  std::uint64_t finish(duration at = 1000s, const std::optional<actors::state_id>& leading = {}) {
    book.finish(
        at,
        [](actors::peer_id peer) -> std::optional<duration> {
          if (peer == 100 || peer == 101 || peer == 666) return std::nullopt;
          return duration(100s);
        },
        leading);
    return check.violated;
  }
};

} // namespace

TEST_CASE("samples_counted holds in a correct run and needs memory for what is under way only") {
  fixture f;
  for (std::uint64_t n = 0; n < 100; ++n) f.epoch(n);
  CHECK(f.book.pieces() == 1);
  CHECK(f.finish() == 0);
  CHECK(f.check.checked > 100);
}

TEST_CASE("samples that one of two primaries takes back have to be final again at the end, if the "
          "other one has committed them") {
  for (const bool again : {true, false}) {
    fixture f{.takeovers = true};
    f.epoch(0);
    f.move(sample_state::returned, 100, {{4, 2}});
    f.move(sample_state::leased, 100, {{8, 2}});
    if (again) f.move(sample_state::committed, 100, {{4, 2}, {8, 2}});
    f.finish();
    INFO(f.check.first_violation);
    CHECK((f.check.violated > 0) == !again);
  }
  // Not of a shard that is alone.
  fixture alone;
  alone.epoch(0);
  alone.move(sample_state::returned, 100, {{4, 2}});
  alone.move(sample_state::committed, 100, {{4, 2}});
  CHECK(alone.finish() > 0);
  // A second use is one, whatever is final at the end.
  fixture twice{.takeovers = true};
  twice.epoch(0);
  twice.move(sample_state::returned, 100, {{0, 12}});
  twice.lease(101, {{0, 12}});
  twice.train(101, {{0, 12}});
  twice.contribute(1, 101, {{0, 12}});
  twice.contribute(1, 100, {});
  twice.end(1, outcome::ok);
  twice.move(sample_state::committed, 101, {{0, 12}});
  CHECK(twice.finish() > 0);
}

TEST_CASE("samples_counted is violated by a sample that is computed and not contributed") {
  fixture f;
  f.lease(100, {{0, 8}});
  f.train(100, {{0, 8}});
  f.contribute(1, 100, {{0, 7}});
  CHECK(f.check.violated == 1);
  CHECK(f.check.first_violation ==
        "at 1.000000000 s: peer 100 computed samples 7 but does not contribute them to epoch 1");
}

TEST_CASE("samples_counted is violated by a weight that is not the number of samples") {
  fixture f;
  f.train(100, {{0, 8}});
  auto what = contribution(1, 0, 2, {{0, 8}}, {1});
  what.weight = 7;
  f.book.contributed(1s, 100, what);
  CHECK(f.check.violated == 1);
}

TEST_CASE(
    "samples_counted is violated by samples computed twice, or contributed but never computed") {
  fixture f;
  f.train(100, {{0, 8}});
  f.train(100, {{7, 2}});
  CHECK(f.check.violated == 1);
  f.contribute(1, 100, {{0, 10}});
  CHECK(f.check.violated == 2);
}

TEST_CASE("samples_counted holds when a failed round is run again with the gradients kept") {
  fixture f;
  f.lease(100, {{0, 8}}), f.lease(101, {{8, 8}});
  f.train(100, {{0, 8}}), f.train(101, {{8, 8}});
  f.contribute(1, 100, {{0, 8}}), f.contribute(1, 101, {{8, 8}});
  f.end(1, outcome::failed);
  f.lease(100, {{16, 4}});
  f.train(100, {{16, 4}});
  f.contribute(2, 100, {{0, 8}, {16, 4}}), f.contribute(2, 101, {{8, 8}});
  f.end(2, outcome::ok);
  f.move(sample_state::committed, 100, {{0, 8}, {16, 4}});
  f.move(sample_state::committed, 101, {{8, 8}});
  CHECK(f.finish() == 0);
}

TEST_CASE(
    "samples_counted is violated by samples of two completed rounds unless they are reported") {
  for (const bool reported : {false, true}) {
    fixture f;
    f.epoch(0);
    f.lease(102, {{20, 1}});
    f.train(101, {{5, 1}});
    f.contribute(7, 100, {}), f.contribute(7, 101, {{5, 1}});
    f.end(7, outcome::ok);
    f.move(sample_state::returned, 102, {{20, 1}});
    if (reported) f.book.reported({"repeated", 101, 7, {{5, 1}}});
    CHECK((f.finish() == 0) == reported);
  }
}

TEST_CASE("samples_counted lets the samples of a round be used again whose members died before "
          "others had heard of it") {
  for (const bool went_on : {false, true}) {
    CAPTURE(went_on);
    fixture f;
    const auto stepped = [&](std::uint64_t epoch, std::uint64_t from, std::uint64_t to) {
      f.book.stepped(100, {epoch + 1, state(from), state(to), group(epoch)});
    };
    f.epoch(0);
    stepped(0, 0, 1);
    // 102 makes a step by itself, and dies before the shard hears of it: the samples are leased
    // again.
    const std::vector<sample_range> ours{{20, 4}};
    f.alone(1, 102, ours);
    stepped(1, 1, 9);
    f.move(sample_state::returned, 102, ours);
    // Others go on from the state before its step, or from what it made.
    f.lease(101, ours), f.train(101, ours);
    f.contribute(2, 100, {}), f.contribute(2, 101, ours);
    f.end(2, outcome::ok);
    f.move(sample_state::committed, 101, ours);
    stepped(2, went_on ? 9 : 1, 2);
    f.finish(1000s, state(2));
    CAPTURE(f.check.first_violation);
    CHECK((f.check.violated == 0) == !went_on);
  }
}

TEST_CASE(
    "samples_counted lets samples be used again when all died who had a state that they are in") {
  for (const bool anew : {true, false}) {
    CAPTURE(anew);
    fixture f;
    const std::vector<sample_range> ours{{0, 4}};
    f.alone(0, 102, ours);
    // With overlap the step is made by one, and gone over to by others.
    f.book.step_made({state(0), state(1), group(0)});
    f.move(sample_state::returned, 102, ours);
    f.alone(1, 100, ours);
    f.book.stepped(100, {1, state(anew ? 0 : 1), state(2), group(1)});
    f.move(sample_state::committed, 100, ours);
    f.finish(1000s, state(2));
    CAPTURE(f.check.first_violation);
    CHECK((f.check.violated == 0) == anew);
  }
}

TEST_CASE("samples_counted, with averaged parameters: a state comes from what the members of its "
          "rounds had") {
  for (const bool of_member : {true, false}) {
    CAPTURE(of_member);
    fixture f{.averaged = true};
    const std::vector<sample_range> ours{{0, 4}};
    f.alone(0, 102, ours);
    f.book.stepped(102, {1, state(0), state(1), group(0)});
    f.move(sample_state::returned, 102, ours);
    f.alone(1, 100, ours);
    // 100 goes on from the first state; 101, in the same round, from that of 102, or also from the
    // first.
    f.book.stepped(100, {2, state(0), state(2), group(1)});
    f.book.stepped(101, {2, state(of_member ? 1 : 0), state(3), group(1)});
    f.move(sample_state::committed, 100, ours);
    f.finish(1000s, state(2));
    CAPTURE(f.check.first_violation);
    CHECK((f.check.violated > 0) == of_member);
  }
}

TEST_CASE("samples_counted: a former primary that comes back may claim or free what the new one "
          "has committed, if nobody uses it") {
  for (const auto& [used, reserved] :
       {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
    CAPTURE(used);
    CAPTURE(reserved);
    fixture f{.takeovers = true};
    f.epoch(0);
    // What 100 held when they parted, or what the new one had reserved by then.
    if (reserved)
      f.move(sample_state::returned, 0, {{0, 12}});
    else
      f.lease(100, {{0, 12}});
    if (used) {
      f.train(100, {{0, 12}});
      f.contribute(1, 100, {{0, 12}}), f.contribute(1, 101, {});
      f.end(1, outcome::ok);
    }
    CHECK((f.finish() == 0) == !used);
  }
}

TEST_CASE("samples_counted: an attacker's claim of an index that nobody issued leaves a gap") {
  constexpr std::uint64_t far = 5 * actors::index_block_size + 1000;
  for (const auto peer : {actors::peer_id{666}, actors::peer_id{101}})
    for (const auto to : {sample_state::leased, sample_state::returned}) {
      CAPTURE(peer);
      fixture f{.takeovers = true};
      f.epoch(0);
      f.move(to, peer, {{far, 2}});
      f.finish();
      CAPTURE(f.check.first_violation);
      CHECK((f.check.violated == 0) == (peer == 666));
    }
  // An honest peer has an index above the claim, so a shard has issued those below, too.
  fixture above{.takeovers = true};
  above.epoch(0);
  above.lease(666, {{far, 2}});
  above.lease(101, {{far + 10, 2}});
  CHECK(above.finish() > 0);
  fixture alone;
  alone.epoch(0);
  alone.move(sample_state::leased, 666, {{1000, 2}});
  CHECK(alone.finish() > 0);
}

TEST_CASE("samples_counted: a step without a round gives back what was given to one") {
  for (const bool empty : {true, false}) {
    CAPTURE(empty);
    fixture f{.computes_meanwhile = true};
    const auto step = [&](std::uint64_t epoch, bool with_round) {
      f.book.stepped(100, {epoch, state(epoch - 1), state(epoch),
                           with_round ? group(epoch) : actors::group_id{}});
    };
    f.lease(100, {{0, 10}});
    f.train(100, {{0, 4}});
    step(1, true);
    step(2, !empty);
    f.train(100, {{4, 2}});
    f.contribute(2, 100, {{4, 2}});
    f.train(100, {{6, 2}});
    f.contribute(3, 100, {{6, 2}});
    CHECK((f.check.violated == 0) == empty);
  }
}

TEST_CASE("samples_counted is violated when a round's samples are never committed") {
  fixture f;
  f.lease(100, {{0, 8}}), f.lease(101, {{8, 8}});
  f.train(100, {{0, 8}}), f.train(101, {{8, 8}});
  f.contribute(1, 100, {{0, 8}}), f.contribute(1, 101, {{8, 8}});
  f.end(1, outcome::ok);
  f.move(sample_state::committed, 100, {{0, 7}}); // one less
  f.move(sample_state::committed, 101, {{8, 8}});
  SUBCASE("which may still be under way at the end") {
    CHECK(f.finish(20s) == 0);
  }
  SUBCASE("but not for ever") {
    CHECK(f.finish() == 1);
    CHECK(f.check.first_violation.find(
              "samples 7 are in a round that ended at 1.000000000 s but were never committed") !=
          std::string::npos);
  }
}

TEST_CASE("samples_counted is violated by an index that the shard skips") {
  fixture f;
  f.lease(100, {{0, 8}});
  f.lease(101, {{9, 4}});
  CHECK(f.finish() == 1);
  CHECK(f.check.first_violation.find("samples 8 are in no state") != std::string::npos);
}

TEST_CASE("samples_counted is violated by a lease to two peers and by a commit nobody used") {
  fixture f;
  f.lease(100, {{0, 8}});
  f.lease(101, {{7, 1}});
  CHECK(f.finish() == 1);

  fixture g;
  g.lease(100, {{0, 8}});
  g.move(sample_state::committed, 100, {{0, 8}});
  CHECK(g.finish() == 8);

  fixture attacked{.commits_may_lie = true};
  attacked.lease(100, {{0, 8}});
  attacked.move(sample_state::committed, 100, {{0, 8}});
  CHECK(attacked.finish() == 0);
}

TEST_CASE(
    "samples_counted is violated by a lease that outlives its peer by more than the lease's time") {
  fixture f;
  f.lease(102, {{0, 8}}); // dies at 100 s
  SUBCASE("not at first") {
    CHECK(f.finish(150s) == 0);
  }
  SUBCASE("but later") {
    CHECK(f.finish(200s) == 8);
  }
}

TEST_CASE("samples_counted lets a peer give its samples back and another one use them") {
  fixture f;
  f.lease(100, {{0, 8}});
  f.train(100, {{0, 8}});
  f.book.dropped(100); // the peer downloads
  f.move(sample_state::returned, 100, {{0, 8}});
  f.lease(101, {{0, 8}});
  f.train(101, {{0, 8}});
  f.contribute(1, 100, {}), f.contribute(1, 101, {{0, 8}});
  f.end(1, outcome::ok);
  f.move(sample_state::committed, 101, {{0, 8}});
  CHECK(f.finish() == 0);
}

TEST_CASE("samples_counted does not mind a sender whose data no part holds") {
  fixture f;
  f.lease(100, {{0, 8}}), f.lease(101, {{8, 8}});
  f.train(100, {{0, 8}}), f.train(101, {{8, 8}});
  f.contribute(1, 100, {{0, 8}}), f.contribute(1, 101, {{8, 8}});
  f.end(1, outcome::ok, {0});
  f.move(sample_state::committed, 100, {{0, 8}});
  f.move(sample_state::returned, 101, {{8, 8}});
  f.lease(101, {{8, 8}});
  f.train(101, {{8, 8}});
  CHECK(f.finish() == 0);
}

TEST_CASE("samples_counted: who repeats a step beside computing drops what it had for that round, "
          "and nothing else") {
  for (const bool keeps : {true, false}) {
    fixture f{.computes_meanwhile = true};
    f.lease(100, {{0, 40}}), f.lease(101, {{40, 10}});
    const auto step = [&](actors::peer_id peer, std::uint64_t epoch) {
      actors::stepped what;
      what.epoch = epoch;
      what.after = {0, epoch};
      what.group = group(epoch);
      f.book.stepped(peer, what);
    };
    f.train(100, {{0, 10}}), f.train(101, {{40, 10}});
    step(100, 1), step(101, 1);
    // A split: peer 101 completes the round with the samples of both, for peer 100 it fails.
    f.contribute(1, 100, {{0, 10}}), f.contribute(1, 101, {{40, 10}});
    f.train(100, {{10, 5}});
    for (std::uint32_t i = 0; i < 2; ++i) {
      const auto what = i == 0
                            ? ending(1, i, 2, outcome::failed, reason::reducer_timeout)
                            : ending(1, i, 2, outcome::ok, reason::none, {{0, 1, {0, 1}, 0}}, {1});
      f.book.round_ended(f.now, 100 + i, what);
      f.rounds.ended(f.now, 100 + i, what);
    }
    f.move(sample_state::committed, 100, {{0, 10}}),
        f.move(sample_state::committed, 101, {{40, 10}});
    f.book.repeated_step(100);
    // The samples that the peer has computed meanwhile have to be in the next round.
    f.contribute(2, 100,
                 keeps ? std::vector<sample_range>{{10, 5}} : std::vector<sample_range>{{10, 3}});
    f.train(100, {{15, 5}});
    step(100, 3);
    f.contribute(3, 100, {{15, 5}});
    CHECK((f.check.violated > 0) == !keeps);
  }
}
