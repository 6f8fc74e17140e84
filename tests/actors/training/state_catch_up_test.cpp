#include "actors/training/state_catch_up.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

using decision = state_catch_up::verdict;

constexpr std::uint64_t step_bytes = 400;

/// A peer at an epoch of its own, and others with made-up records.
struct lab {
  using silent = collector<found>;
  mini_world world;
  mini_host& host = world.add_host("h");
  std::vector<shared<record>> records;
  progress_table others;
  model_state state;
  bool one_branch = true;
  std::uint64_t rate_down = 8'000'000; // 1 MB/s
  bool needs_reachable = false;
  state_catch_up machine = made(true);

  explicit lab(bool shares = true) : one_branch(shares) {
    state.id = {1, 0};
    state.parameters = payload::size_only(400);
    state.optimizer = payload::size_only(800);
    machine = made(shares);
  }

  static state_catch_up made(bool shares) {
    state_catch_up::settings how;
    how.fetch.donors = 2;
    how.max_refresh = 5s;
    how.matchmaking_time = 8s;
    how.one_branch = how.repeats_steps = shares;
    how.step_bytes = step_bytes;
    how.size_only = true;
    return state_catch_up(how);
  }

  static state_id at(std::uint64_t epoch) { return {1, epoch}; }
  /// A peer with the state of `epoch`.
  peer_id add(std::uint64_t epoch, std::uint64_t rate_up = 1000, bool unreachable = false,
              round_part part = round_part::takes_part) {
    progress what;
    what.epoch = epoch;
    what.state = at(epoch);
    what.rate_up = rate_up;
    what.unreachable = unreachable ? 1 : 0;
    what.part = part;
    const peer_id id = 100 + records.size();
    records.push_back(record{fmt::format("{:016x}", id),
                             world.spawn<silent>(host, std::make_shared<silent::log>()),
                             what.pack(), 0});
    others.replace(records, 1, 0s);
    return id;
  }
  /// Moves the others to `epoch`.
  void move_to(std::uint64_t epoch, std::size_t count = 3) {
    records.clear();
    for (std::size_t i = 0; i < count; ++i) add(epoch);
  }
  branch own() const { return {state.epoch, state.samples, state.id}; }
  state_catch_up::situation now() const {
    return {others, own(), others.leading(own()), state, rate_down, needs_reachable};
  }
  state_catch_up::plan begin(duration when = 1s) { return machine.begin(now(), when); }

  static std::vector<peer_id> ids(const std::vector<expected_peer>& of) {
    std::vector<peer_id> out;
    for (const auto& one : of) out.push_back(one.peer);
    return out;
  }
  /// The current download brings the leading state.
  model_state take_state(const state_catch_up::plan& plan, std::uint64_t epoch,
                         std::uint64_t id_epoch) {
    model_state theirs = state;
    theirs.epoch = epoch;
    theirs.id = at(id_epoch);
    const shared_object object(theirs, 256);
    plan.download->begin(object.offer());
    while (const auto offset = plan.download->take())
      REQUIRE(plan.download->add(*offset, object.bytes(*offset, 256)));
    download_report report;
    machine.ended(report);
    auto got = machine.take_result(report, state.id);
    REQUIRE(std::holds_alternative<model_state>(got));
    return std::get<model_state>(std::move(got));
  }
  void adopt(const model_state& next) {
    state = next;
    machine.adopted(true);
  }
  void fail(reason why) {
    download_report report;
    report.why = why;
    machine.ended(report);
    machine.take_result(report, state.id);
  }
};

} // namespace

TEST_CASE(
    "catch-up: a peer that missed few steps downloads them, and one that missed many the state") {
  lab t;
  // Two steps have 800 bytes, the state has 1200.
  t.move_to(2);
  auto plan = t.begin();
  REQUIRE(plan.what == decision::download);
  CHECK(plan.download->object() == step_object(t.state.id));
  CHECK(plan.donors.size() == 2);
  lab other;
  other.move_to(3);
  plan = other.begin();
  REQUIRE(plan.what == decision::download);
  CHECK(plan.download->object() == lab::at(3));
}

TEST_CASE(
    "catch-up: with own parameters at each peer any state of the epoch will do, and no step") {
  lab t(false);
  t.add(1);
  const auto ahead = t.add(2);
  const auto plan = t.begin();
  REQUIRE(plan.what == decision::download);
  CHECK(lab::ids(plan.donors) == std::vector{ahead});
  CHECK(plan.download->object() == lab::at(2));
  t.machine.adopted(true);
  CHECK_FALSE(t.machine.goes_on(t.others, t.own(), t.others.leading(t.own())));
}

TEST_CASE("catch-up: donors with the fastest lines are asked first, and each once before any is "
          "asked again") {
  lab t;
  t.add(3, 10);
  const auto fast = t.add(3, 30), medium = t.add(3, 20);
  CHECK(lab::ids(t.begin().donors) == std::vector{fast, medium});
  CHECK(lab::ids(t.begin().donors) == std::vector<peer_id>{100});
  // No other donor is left, so all may be asked again after a pause.
  auto plan = t.begin(2s);
  CHECK(plan.what == decision::nobody);
  CHECK(plan.pause == 5s);
  CHECK(t.begin(6s).what == decision::not_yet);
  CHECK(lab::ids(t.begin(7s).donors) == std::vector{fast, medium});
}

TEST_CASE("catch-up: a faulty donor is never asked again") {
  lab t;
  const auto faulty = t.add(3, 30), honest = t.add(3, 20);
  t.begin();
  download_report report;
  report.why = reason::donors_lost;
  report.faulty = {faulty};
  t.machine.ended(report);
  t.machine.take_result(report, t.state.id);
  t.machine.adopted(false);
  CHECK(lab::ids(t.begin().donors) == std::vector{honest});
}

TEST_CASE("catch-up: a donor far beyond what the others say is not wanted") {
  lab l(false);
  l.move_to(10);
  const auto plan = l.begin();
  REQUIRE(plan.what == state_catch_up::verdict::download);
  state_offer offer;
  offer.epoch = 14; // the donor went on since its record
  CHECK(plan.download->wants(offer));
  offer.epoch = 1'000'000;
  CHECK_FALSE(plan.download->wants(offer));
}

TEST_CASE("catch-up: an offer of the leading state with another epoch than the records' is not "
          "wanted") {
  lab l;
  l.move_to(10);
  const auto plan = l.begin();
  REQUIRE(plan.what == state_catch_up::verdict::download);
  state_offer offer;
  offer.epoch = 10;
  CHECK(plan.download->wants(offer));
  offer.epoch = 9;
  CHECK_FALSE(plan.download->wants(offer));
}

TEST_CASE("catch-up: a step has to lead on along the branch, and its donors are distrusted only if "
          "its bytes are false") {
  lab l;
  l.move_to(1);
  auto at = l.now();
  auto& certified = at.certified.emplace();
  certified.epoch = l.state.epoch;
  certified.state = l.state.id;
  certified.next = {7, 7};
  for (const auto& [peer, e] : l.others.entries()) certified.holders.emplace_back(1, peer);
  auto plan = l.machine.begin(at, 1s);
  REQUIRE(plan.what == state_catch_up::verdict::download);
  state_offer offer;
  offer.epoch = 1;
  offer.state = {7, 7};
  CHECK(plan.download->wants(offer));
  offer.state = {8, 8}; // another round from the same state
  CHECK_FALSE(plan.download->wants(offer));

  download_report report;
  report.why = reason::none;
  report.holders = lab::ids(plan.donors);
  l.machine.reject_step(l.state.id);
  l.machine.adopted(false);
  CHECK(!l.machine.begin(at, 2s).donors.empty());
}

TEST_CASE("catch-up: there is no pause while an answer is due that may prove a state") {
  lab t;
  const auto holder = t.add(3);
  const auto begin = [&](bool is_open, bool proven, duration when) {
    auto now = t.now();
    now.certified.emplace();
    now.certified->epoch = 3;
    now.certified->state = lab::at(3);
    now.certified->root = {7, 7};
    now.certified->is_open = is_open;
    if (proven) now.certified->holders = {{3, holder}};
    return t.machine.begin(now, when).what;
  };
  CHECK(begin(true, false, 1s) == decision::not_yet);
  CHECK(begin(true, true, 1001ms) == decision::download);
  t.machine = lab::made(true);
  CHECK(begin(false, false, 2s) == decision::nobody);
  CHECK(begin(false, true, 2001ms) == decision::not_yet);
}

TEST_CASE("catch-up: unreachable donors are a last resort, except for peers that cannot use them") {
  lab t;
  const auto hidden = t.add(3, 30, true);
  CHECK(lab::ids(t.begin().donors) == std::vector{hidden});
  lab other;
  other.add(3, 30, true);
  const auto open = other.add(3, 20);
  CHECK(lab::ids(other.begin().donors) == std::vector{open});
  lab same;
  same.add(3, 30, true);
  same.needs_reachable = true;
  CHECK(same.begin().what == decision::nobody);
}

TEST_CASE("catch-up: the others wait for a short download, and for a long one only near its end") {
  lab t;
  t.move_to(3);
  // 1200 bytes at 1 MB/s.
  CHECK(t.begin().arrives_soon);
  REQUIRE(t.machine.arriving());
  CHECK(t.machine.arriving()->epoch == 3);
  lab slow;
  slow.move_to(3);
  // 1000 bits in half of the time that the others wait.
  slow.rate_down = 2000;
  const auto plan = slow.begin();
  CHECK_FALSE(plan.arrives_soon);
  CHECK(plan.fetch.announce_bytes == 1000);
  CHECK(plan.fetch.reserves > 0);
  CHECK_FALSE(slow.machine.arriving());
  slow.machine.nears_end(slow.others.leading(slow.own()));
  CHECK(slow.machine.arriving());
}

TEST_CASE(
    "catch-up: an outdated state is followed by the steps since then, from its holders first") {
  lab t;
  t.move_to(10);
  auto next = t.take_state(t.begin(), 10, 10);
  t.adopt(next);
  t.move_to(13);
  REQUIRE(t.machine.goes_on(t.others, t.own(), t.others.leading(t.own())));
  const auto plan = t.begin();
  REQUIRE(plan.what == decision::download);
  CHECK(plan.download->object() == step_object(t.state.id));
  CHECK(plan.donors.size() == 2);
}

TEST_CASE(
    "catch-up: a peer that falls further behind is too slow, and each pause is twice as long") {
  lab t;
  duration now = 1s;
  for (const auto pause : {80s, 160s, 320s}) {
    t.state.epoch = 0;
    t.state.id = lab::at(0);
    t.move_to(10);
    t.adopt(t.take_state(t.begin(now), 10, 10));
    t.move_to(11);
    REQUIRE(t.machine.goes_on(t.others, t.own(), t.others.leading(t.own())));
    // Five steps, after one at the begin.
    t.move_to(15);
    REQUIRE(t.begin(now).what == decision::download);
    t.fail(reason::busy);
    t.move_to(16);
    const auto plan = t.begin(now);
    CHECK(plan.what == decision::too_slow);
    CHECK(plan.pause == pause);
    CHECK(t.begin(now + pause - 1s).what == decision::not_yet);
    now += pause;
  }
}

TEST_CASE("catch-up: several states that were outdated on arrival make a peer too slow, and "
          "arrival ends that") {
  for (const bool arrives : {false, true}) {
    lab t;
    for (std::uint64_t i = 1; i <= 3; ++i) {
      t.move_to(10 * i);
      const auto plan = t.begin();
      REQUIRE(plan.what == decision::download);
      auto next = t.take_state(plan, 10 * i, 10 * i);
      t.adopt(next);
    }
    if (arrives) t.machine.arrived();
    t.move_to(40);
    CHECK(t.begin().what == (arrives ? decision::download : decision::too_slow));
  }
}

TEST_CASE("catch-up: without a donor of the next step, the whole state is downloaded") {
  lab t;
  t.move_to(1);
  REQUIRE(t.begin().download->object() == step_object(t.state.id));
  // A busy donor may have the step.
  t.fail(reason::busy);
  t.machine.adopted(false);
  REQUIRE(t.begin().download->object() == step_object(t.state.id));
  t.fail(reason::out_of_sync);
  t.machine.adopted(false);
  CHECK(t.begin().download->object() == lab::at(1));
}

TEST_CASE("catch-up: an earlier download is resumed, from peers that may have kept the state") {
  lab t;
  t.move_to(10);
  const auto plan = t.begin();
  model_state theirs = t.state;
  theirs.epoch = 10;
  theirs.id = lab::at(10);
  plan.download->begin(shared_object(theirs, 256).offer());
  t.fail(reason::donors_lost);
  t.move_to(12);
  t.machine.adopted(false);
  CHECK(t.begin().download == plan.download);
}

TEST_CASE("catch-up: a step concurrent with computing is fetched from peers that have the round's "
          "result") {
  lab t;
  t.add(0);
  CHECK(t.machine.begin_step(t.now()).what == decision::nobody);
  CHECK_FALSE(t.machine.downloads_concurrently());
  t.records.clear();
  t.state.id = lab::at(0);
  const auto through = t.add(0, 10, false, round_part::has_result);
  const auto plan = t.machine.begin_step(t.now());
  REQUIRE(plan.what == decision::download);
  CHECK(lab::ids(plan.donors) == std::vector{through});
  CHECK(t.machine.downloads_concurrently());
  download_report lost;
  lost.why = reason::donors_lost;
  CHECK_FALSE(t.machine.take_concurrent_step(lost));
  CHECK_FALSE(t.machine.downloads_concurrently());
}
