#include "actors/data/sample_ranges.hpp"
#include "actors/failpoints.hpp"
#include "actors/training/shard_client.hpp"
#include "actors/training/state_object.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/actor_cast.hpp>
#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

/// Sample i is the byte i.
struct bytes_source final : sample_source {
  std::uint32_t sample_bytes() const override { return 1; }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    out[0] = static_cast<std::byte>(index);
  }
};

/// A corpus of 100 samples.
const corpus& hundred() {
  static const auto source = std::make_shared<const bytes_source>();
  static const corpus all(source, tree_of(*source, 100), 0);
  return all;
}

template <class Message>
Message proven(const sample_range& range, bool changed = false) {
  std::vector<std::byte> bytes(range.count);
  for (std::uint32_t i = 0; i < range.count; ++i)
    hundred().read(range.first + i, std::span(bytes).subspan(i, 1));
  if (changed) bytes.back() ^= std::byte{1};
  return {range, payload{std::move(bytes)}, hundred().proof_of(range)};
}

/// A client with recorded effects, and some replicas that the tests play.
struct lab final : shard_client::io {
  explicit lab(const corpus_root& fixed = {}) : corpus_(fixed) {}

  corpus_root corpus_;
  using silent = collector<found>;
  mini_world world;
  mini_host& host = world.add_host("h");
  caf::actor me = actor();
  held_samples held;
  caf::actor false_shard =
      world.spawn<silent>(world.add_host("false"), std::make_shared<silent::log>());
  /// All shards are on this host, unless the test says otherwise.
  shard_finder find_shard = [this](const caf::strong_actor_ptr& address,
                                   std::string_view proof) -> std::optional<std::size_t> {
    if (host.peer_of(address) == host.id() || proof == "good certificate") return 0;
    return std::nullopt;
  };
  shard_client client{*this, {true, 64, 200ms, 5s, find_shard, corpus_, 1, true}, held};

  std::vector<std::pair<caf::actor, caf::message>> sent;
  std::vector<caf::actor> watched;
  std::size_t look_ups = 0;
  std::vector<duration> planned;
  bool takes_failpoint = false;

  void send(const caf::actor& to, caf::message content) override {
    sent.emplace_back(to, std::move(content));
  }
  const caf::actor& self() override { return me; }
  void watch(const caf::actor& whom) override { watched.push_back(whom); }
  void unwatch(const caf::actor& whom) override { std::erase(watched, whom); }
  void look_up_shards() override { ++look_ups; }
  void look_up_shards_in(duration wait) override { planned.push_back(wait); }
  bool failpoint(std::string_view branch) override {
    return takes_failpoint && branch == failpoint::commit_twice;
  }

  caf::actor actor() { return world.spawn<silent>(host, std::make_shared<silent::log>()); }
  static caf::strong_actor_ptr strong(const caf::actor& of) {
    return caf::actor_cast<caf::strong_actor_ptr>(of);
  }
  static caf::actor_addr weak(const caf::actor& of) { return caf::actor_cast<caf::actor_addr>(of); }
  static shared<record> alone(const caf::actor& of, std::int64_t expires) {
    return record{"shard", of, {}, expires};
  }
  static shared<record> replica(const caf::actor& of, std::uint64_t index_block,
                                replica_role role) {
    return record{"shard", of, shard_record{replica_record{index_block, role}, {}}.pack(), 0};
  }

  /// The messages of one type that `to` got.
  template <class Message>
  std::vector<Message> to(const caf::actor& whom) const {
    std::vector<Message> out;
    for (const auto& each : sent) {
      const caf::message& content = each.second;
      if (each.first == whom && content.match_elements<Message>())
        out.push_back(content.get_as<Message>(0));
    }
    return out;
  }
};

commit of_round(std::uint64_t number) {
  return {number, {number, number}, 1, {}};
}

} // namespace

TEST_CASE(
    "shard client: the incarnation of a lone shard with the latest record gets the whole window") {
  lab t;
  const auto old = t.actor(), fresh = t.actor();
  t.client.found({lab::alone(old, 5), lab::alone(fresh, 9)}, 1s);
  CHECK(t.client.connected());
  CHECK(t.watched == std::vector{fresh});
  REQUIRE(t.to<sample_request>(fresh).size() == 1);
  CHECK(t.to<sample_request>(fresh)[0].credit == 64);
  CHECK(t.to<sample_request>(old).empty());
}

TEST_CASE("shard client: credit is given in strides of a quarter of the window, and when leases "
          "need renewal") {
  lab t;
  const auto shard = t.actor();
  t.client.found({lab::alone(shard, 5)}, 0s);
  const auto samples_come = [&](std::uint32_t count, duration now) {
    const sample_range range{1000 * static_cast<std::uint64_t>(now.count()), count};
    CHECK(
        t.client.take(samples{range, payload::size_only(count)}, lab::strong(shard), now).value());
  };
  samples_come(64, 1s);
  t.held.start(t.held.take(15, 1, 1s));
  t.client.request(1s);
  // 15 are less than a quarter.
  CHECK(t.to<sample_request>(shard).size() == 1);
  t.held.end_job();
  t.held.start(t.held.take(1, 1, 1s));
  t.client.request(1s);
  REQUIRE(t.to<sample_request>(shard).size() == 2);
  CHECK(t.to<sample_request>(shard)[1].credit == 16);
  t.client.request(5s);
  CHECK(t.to<sample_request>(shard).size() == 2);
  // max_refresh after the last samples.
  t.client.request(6s);
  REQUIRE(t.to<sample_request>(shard).size() == 3);
  CHECK(t.to<sample_request>(shard)[2].credit == 0);
  CHECK(index_count(t.to<sample_request>(shard)[2].held) == 49);
}

TEST_CASE("shard client: credit without samples for two refresh intervals is given again") {
  lab t;
  const auto shard = t.actor();
  t.client.found({lab::alone(shard, 5)}, 1s);
  t.client.request(10s);
  CHECK(t.to<sample_request>(shard).back().credit == 0);
  t.client.request(12s);
  CHECK(t.to<sample_request>(shard).back().credit == 64);
}

TEST_CASE("shard client: a stopped peer asks for nothing") {
  lab t;
  const auto shard = t.actor();
  t.client.stop();
  t.client.found({lab::alone(shard, 5)}, 1s);
  t.client.request(60s);
  CHECK(t.client.connected());
  CHECK(t.sent.empty());
}

TEST_CASE("shard client: a primary is asked before backups, and the longest serving backup before "
          "the others") {
  lab t;
  const auto first = t.actor(), second = t.actor(), third = t.actor();
  const auto records = [&](bool with_primary) {
    std::vector<shared<record>> out{lab::replica(second, 20, replica_role::backup),
                                    lab::replica(first, 10, replica_role::backup)};
    if (with_primary) out.push_back(lab::replica(third, 30, replica_role::primary));
    return out;
  };
  t.client.found(records(true), 1s);
  CHECK(t.client.is_current(lab::strong(third)));
  t.client.down(lab::weak(third), 2s);
  CHECK(t.client.is_current(lab::strong(first)));
  CHECK(t.look_ups == 1);
  // Messages of the dead shard may still arrive. They are not misbehaviour.
  CHECK(t.client.is_known(lab::strong(third)));
  CHECK_FALSE(t.client.is_known(lab::strong(t.me)));
}

TEST_CASE("shard client: a record of a host that is no data shard is ignored") {
  lab t;
  const auto shard = t.actor();
  t.client.found(
      {lab::replica(t.false_shard, 0, replica_role::primary), lab::alone(t.false_shard, 1000)}, 1s);
  CHECK_FALSE(t.client.connected());
  CHECK(t.sent.empty());
  CHECK_FALSE(t.client.is_known(lab::strong(t.false_shard)));
  CHECK_FALSE(t.client.on(commit_received{{1, 1}}, lab::strong(t.false_shard)));
  t.client.found({lab::replica(t.false_shard, 0, replica_role::primary),
                  lab::replica(shard, 9, replica_role::backup)},
                 2s);
  CHECK(t.client.is_current(lab::strong(shard)));
  CHECK(t.to<sample_request>(t.false_shard).empty());
  // A peer without a link to the shard's host learns from the certificate who it is.
  lab other;
  record proven{"shard", other.false_shard,
                shard_record{replica_record{0, replica_role::primary}, "good certificate"}.pack(),
                0};
  other.client.found({proven}, 1s);
  CHECK(other.client.is_current(lab::strong(other.false_shard)));
}

TEST_CASE("shard client: a referral to a host that is no data shard is not followed") {
  lab t;
  const auto backup = t.actor();
  t.client.found({lab::replica(backup, 20, replica_role::backup)}, 1s);
  t.client.on(not_primary{t.false_shard}, lab::strong(backup), 2s);
  CHECK_FALSE(t.client.connected());
  CHECK(t.to<sample_request>(t.false_shard).empty());
  // The peer reads the records again, and they may show what that host is.
  CHECK(t.planned.size() == 1);
}

TEST_CASE("shard client: a member that claims far samples does not make a later run skip data") {
  lab t;
  const auto far = std::uint64_t{1} << 62;
  CHECK(t.client.plausible_end({}) == 0);
  // Without samples of its own, a peer believes what most members say.
  CHECK(t.client.plausible_end({100, far, 200}) == 200);
  CHECK(t.client.plausible_end({far}) == far);
  const auto shard = t.actor();
  t.client.found({lab::alone(shard, 5)}, 1s);
  REQUIRE(t.client.take(samples{{500, 10}, payload::size_only(10)}, lab::strong(shard), 2s));
  CHECK(t.client.plausible_end({far}) == 0);
  CHECK(t.client.plausible_end({far, ~0ull, 700, 600}) == 700);
  CHECK(t.client.plausible_end({510 + shard_client::most_ahead}) == 510 + shard_client::most_ahead);
  CHECK(t.client.plausible_end({511 + shard_client::most_ahead}) == 0);
}

TEST_CASE("shard client: samples count only from the current shard, and only with their size") {
  lab t;
  const auto old = t.actor(), shard = t.actor();
  t.client.found({lab::alone(old, 1)}, 1s);
  t.client.down(lab::weak(old), 2s);
  t.client.found({lab::alone(shard, 2)}, 3s);
  const auto take = [&](const sample_range& range, std::size_t bytes, const caf::actor& from) {
    return t.client.take(samples{range, payload::size_only(bytes)}, lab::strong(from), 4s);
  };
  CHECK(take({0, 4}, 4, old).value() == false);
  CHECK(take({0, 4}, 4, t.me).error() == "samples from a shard that was not asked");
  for (const auto& [range, bytes] :
       {std::pair{sample_range{0, 4}, 5}, {{0, 0}, 0}, {{~0ull, 4}, 4}})
    CHECK(take(range, static_cast<std::size_t>(bytes), shard).error() ==
          "samples of the wrong size, or without their proof");
  CHECK(t.held.ready() == 0);
  CHECK(take({0, 4}, 4, shard).value());
  CHECK(t.held.ready() == 4);
  // Without a corpus, nobody can prove anything.
  CHECK_FALSE(t.client.take(proven<proven_samples>({10, 4}), lab::strong(shard), 4s));
}

TEST_CASE("shard client: changed samples are not used, and another replica gives copies of them") {
  lab t(hundred().root());
  const auto liar = t.actor(), honest = t.actor();
  t.client.found({lab::replica(liar, 10, replica_role::primary),
                  lab::replica(honest, 20, replica_role::backup)},
                 1s);
  const auto from = lab::strong(liar), other = lab::strong(honest);
  CHECK_FALSE(t.client.take(samples{{0, 8}, payload{std::vector<std::byte>(8)}}, from, 2s));
  CHECK(t.client.take(proven<proven_samples>({0, 8}), from, 2s).value());
  CHECK(t.client.take(proven<proven_samples>({8, 8}, true), from, 3s).error() ==
        "samples that are not of the corpus");
  CHECK(t.held.ready() == 8);
  REQUIRE(t.to<copies_wanted>(honest).size() == 1);
  CHECK(t.to<copies_wanted>(honest)[0].ranges == std::vector<sample_range>{{8, 8}});
  // Audits turn to the other replica, too.
  t.client.ask_for_copies({{40, 4}});
  CHECK(t.to<copies_wanted>(honest).size() == 2);
  CHECK(t.to<copies_wanted>(liar).empty());

  CHECK_FALSE(t.client.take(proven<proven_copies>({8, 8}, true), from, 4s));
  CHECK_FALSE(t.client.take(proven<proven_copies>({8, 8}), lab::strong(t.false_shard), 4s));
  CHECK(t.held.ready() == 8);
  // The copies come in two messages, with neighbours that nobody has leased to this peer.
  CHECK(t.client.take(proven<proven_copies>({4, 8}), other, 5s).value());
  CHECK(t.held.ready() == 12);
  CHECK(t.client.take(proven<proven_copies>({12, 8}), other, 5s).value());
  CHECK(t.held.all() == std::vector<sample_range>{{0, 16}});
  CHECK(t.client.take(proven<proven_copies>({8, 8}), other, 6s).value() == false);
  CHECK(t.held.ready() == 16);
}

TEST_CASE("shard client: copies of changed samples are asked for again until their lease is lost") {
  lab t(hundred().root());
  const auto liar = t.actor(), honest = t.actor();
  t.client.found({lab::replica(liar, 10, replica_role::primary),
                  lab::replica(honest, 20, replica_role::backup)},
                 1s);
  CHECK_FALSE(t.client.take(proven<proven_samples>({0, 56}, true), lab::strong(liar), 2s));
  // The copies that are on their way need their place in the window.
  t.client.request(4s);
  CHECK(t.to<sample_request>(liar).size() == 1);
  t.client.lost({{0, 8}, {16, 40}});
  CHECK(t.to<copies_wanted>(honest).size() == 1);
  t.client.request(8s);
  CHECK(t.to<copies_wanted>(honest).size() == 2);
  t.client.lost({{10, 2}});
  CHECK(t.client.take(proven<proven_copies>({8, 8}), lab::strong(honest), 9s).value());
  CHECK(t.held.all() == std::vector<sample_range>{{8, 2}, {12, 4}});
  t.client.request(20s);
  CHECK(t.to<copies_wanted>(honest).size() == 2);
}

TEST_CASE("shard client: a replica that comes later gives copies of changed samples") {
  lab t(hundred().root());
  const auto liar = t.actor(), honest = t.actor();
  const auto first = lab::replica(liar, 10, replica_role::primary);
  t.client.look_up(1s);
  t.client.found({first}, 1s);
  CHECK_FALSE(t.client.take(proven<proven_samples>({8, 8}, true), lab::strong(liar), 2s));
  CHECK(t.look_ups == 1);
  t.client.request(8s);
  CHECK(t.look_ups == 2);
  t.client.found({first}, 8s);
  CHECK(t.look_ups == 2);
  t.client.request(14s);
  CHECK(t.look_ups == 3);
  t.client.found({first, lab::replica(honest, 20, replica_role::backup)}, 14s);
  REQUIRE(t.to<copies_wanted>(honest).size() == 1);
  CHECK(t.to<copies_wanted>(honest)[0].ranges == std::vector<sample_range>{{8, 8}});
}

TEST_CASE("shard client: a lone shard that changes samples fills no memory, and its changed copies "
          "go nowhere") {
  lab t(hundred().root());
  const auto shard = t.actor();
  t.client.found({lab::alone(shard, 1)}, 1s);
  for (std::uint64_t i = 0; i < 90; i += 10)
    CHECK_FALSE(t.client.take(proven<proven_samples>({i, 10}, true), lab::strong(shard), 2s));
  CHECK(t.to<copies_wanted>(shard).empty());
  CHECK(t.held.ready() == 0);
  // The window has room for six of the nine.
  CHECK(t.client.take(proven<proven_copies>({50, 10}), lab::strong(shard), 3s).value());
  CHECK_FALSE(t.client.take(proven<proven_copies>({60, 10}), lab::strong(shard), 3s).value());
}

TEST_CASE("shard client: a referral is followed, but one to a lost primary only after repetition") {
  lab t;
  const auto primary = t.actor(), backup = t.actor();
  t.client.found({lab::replica(primary, 10, replica_role::primary),
                  lab::replica(backup, 20, replica_role::backup)},
                 1s);
  t.client.down(lab::weak(primary), 2s);
  REQUIRE(t.client.is_current(lab::strong(backup)));
  duration now = 3s;
  for (int i = 0; i < 4; ++i, now += 1s) {
    t.client.on(not_primary{primary}, lab::strong(backup), now);
    CHECK_FALSE(t.client.connected());
    t.client.look_up_due(now);
    // There is no other replica.
    t.client.found({lab::replica(backup, 20, replica_role::backup)}, now);
    REQUIRE(t.client.is_current(lab::strong(backup)));
  }
  CHECK(t.planned == std::vector<duration>(4, 200ms));
  t.client.on(not_primary{primary}, lab::strong(backup), now);
  CHECK(t.client.is_current(lab::strong(primary)));
  // An answer of a replica that was left changes nothing.
  t.client.on(not_primary{backup}, lab::strong(backup), now);
  CHECK(t.client.is_current(lab::strong(primary)));
}

TEST_CASE("shard client: shards are looked up again no earlier than min_refresh later") {
  lab t;
  t.client.look_up(1s);
  t.client.look_up(1050ms);
  t.client.look_up(1060ms);
  CHECK(t.look_ups == 1);
  CHECK(t.planned == std::vector<duration>{150ms});
  t.client.look_up_due(1200ms);
  CHECK(t.look_ups == 2);
}

TEST_CASE("shard client: a commit goes to each new shard until one has answered") {
  lab t;
  const auto first = t.actor(), second = t.actor();
  t.client.hand_in(of_round(1));
  CHECK(t.sent.empty());
  t.client.found({lab::alone(first, 1)}, 1s);
  CHECK(t.to<commit>(first).size() == 1);
  t.client.hand_in_once(of_round(1));
  t.client.hand_in_once(of_round(2));
  CHECK(t.to<commit>(first).size() == 2);
  CHECK(t.client.on(commit_received{{1, 1}}, lab::strong(first)));
  CHECK_FALSE(t.client.on(commit_received{{2, 2}}, lab::strong(t.me)));
  t.client.down(lab::weak(first), 2s);
  t.client.found({lab::alone(second, 2)}, 3s);
  REQUIRE(t.to<commit>(second).size() == 1);
  CHECK(t.to<commit>(second)[0].group == group_id{2, 2});
  t.takes_failpoint = true;
  t.client.hand_in(of_round(3));
  CHECK(t.to<commit>(second).size() == 3);
}

TEST_CASE("shard client: two commits of a round carry its proof, and the client keeps it") {
  lab t;
  const auto shard = t.actor();
  t.client.found({lab::alone(shard, 1)}, 1s);
  const auto proof = std::make_shared<const round_certificate>();
  t.client.hand_in(of_round(1), proof, true);
  t.client.hand_in(of_round(2), proof, false);
  CHECK(t.to<proven_commit>(shard).size() == 1);
  CHECK(t.to<commit>(shard).size() == 1);
  CHECK(t.client.proof_of({1, 1}) == proof);
  CHECK(t.client.proof_of({2, 2}) == proof);
  CHECK(t.client.proof_of({3, 3}) == nullptr);
  CHECK(t.client.on(commit_received{{1, 1}}, lab::strong(shard)));
  CHECK(t.client.proof_of({1, 1}) == nullptr);

  round_result result;
  result.members.resize(3);
  CHECK_FALSE(carries_proof(result));
  round_certificate certificate;
  certificate.roster.leader = 2;
  result.certificate = std::make_shared<const round_certificate>(certificate);
  std::vector<std::uint32_t> carriers;
  for (result.member = 0; result.member < 3; ++result.member)
    if (carries_proof(result)) carriers.push_back(result.member);
  CHECK(carriers == std::vector<std::uint32_t>{0, 2});
}

TEST_CASE("shard client: the oldest of too many unanswered commits is forgotten") {
  lab t;
  for (std::uint64_t i = 0; i <= most_commits; ++i) t.client.hand_in(of_round(i));
  CHECK(t.client.unanswered().size() == most_commits);
  CHECK(t.client.unanswered().front().epoch == 1);
}

TEST_CASE("shard client: a member commits for its neighbours, but not for those elsewhere or "
          "without samples") {
  round_result round;
  round.epoch = 3;
  round.group = {3, 3};
  round.member = 2;
  for (std::uint64_t i = 0; i < 4; ++i) {
    round.members.emplace_back();
    round.members.back().peer = 10 + i;
    if (i != 3) round.members.back().samples = {{100 * i, 5}};
  }
  round.declined = {0};
  round.parts.resize(2);
  round.parts[0].senders = {1, 2};
  round.parts[1].senders = {2};
  CHECK(members_spoken_for(round, false) == 4);
  const auto whole = commit_of(round, 4);
  CHECK(whole.parts_total == 2);
  REQUIRE(whole.entries.size() == 2);
  CHECK(whole.entries[0].peer == 12);
  CHECK(whole.entries[0].parts_included == 2);
  CHECK(whole.entries[1].peer == 11);
  CHECK(whole.entries[1].parts_included == 1);
  CHECK(commit_of(round, 1).entries.size() == 1);
  round.members.resize(33);
  CHECK(members_spoken_for(round, false) == 4);
  CHECK(members_spoken_for(round, true) == 33);
}
