// One guard alone: the test plays the other members, says everything that they say, and sees what
// the guard does.
#include "actors/averaging/guard.hpp"
#include "actors/averaging/guard_observations.hpp"
#include "actors/averaging/guard_statements.hpp"
#include "actors/byte_counter.hpp"
#include "tests/actors/support/mini_world.hpp"
#include "tests/actors/support/rosters.hpp"

#include <caf/actor_cast.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

constexpr std::uint32_t self = 0;

struct lone_guard : round_io, guard_io {
  mini_world world;
  averaging_config config;
  round_request request;
  group_begun group;
  std::vector<mini_host*> hosts;
  std::vector<caf::actor> addresses;
  std::vector<std::vector<float>> values;
  std::optional<round_guard> guard;

  duration now{};
  std::vector<std::pair<std::uint32_t, caf::message>> sent;
  std::vector<std::string> suspicions;
  std::vector<std::uint32_t> left_out, without;
  std::vector<evidence> proofs;
  std::vector<verdict> verdicts;
  std::vector<recomputation> duties;
  std::vector<std::uint32_t> failures;
  bool may_leave = false;

  /// `values_in_all` > 0: the values have no bits, and so many are in the vector.
  explicit lone_guard(std::uint32_t count = 4, std::uint64_t values_in_all = 0) {
    guard_options options;
    config.guard = std::make_shared<const guard_options>(options);
    if (values_in_all == 0) config.chunk_bytes = 16;
    group.epoch = 3;
    group.chunk_bytes = config.chunk_bytes;
    group.boundaries = {0};
    using dummy = collector<chunk_received>;
    std::vector<const mini_host*> signers;
    for (std::uint32_t m = 0; m < count; ++m) {
      hosts.push_back(&world.add_host(fmt::format("m-{}", m)));
      signers.push_back(hosts.back());
      addresses.push_back(world.spawn<dummy>(*hosts.back(), std::make_shared<dummy::log>()));
      group.members.push_back({100 + m, addresses.back(), m + 1, 1, 1, 2, 1, samples_of(m)});
      group.boundaries.push_back(values_in_all > 0 ? values_in_all * (m + 1) / count
                                                   : group.boundaries.back() + 5 + m);
    }
    group.value_count = group.boundaries.back();
    group = sealed(std::move(group), signers);
    auto draws = stream(1, "lone_guard");
    for (std::uint32_t m = 0; m < count && values_in_all == 0; ++m) {
      auto& one = values.emplace_back(group.value_count);
      for (auto& x : one) x = static_cast<float>(draws.normal());
    }
    request.values =
        values_in_all > 0 ? payload::size_only(4 * values_in_all) : payload{values[self]};
    request.weight = group.members[self].weight;
    request.samples = samples_of(self);
    guard.emplace(config, request, group, self, request.values, secret_of(self), *this, *this);
    guard->start();
  }

  static std::vector<sample_range> samples_of(std::uint32_t m) { return {{100 * m, m + 1}}; }
  static key256 secret_of(std::uint32_t m) { return {m, 2, 3, 4}; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(group.members.size()); }
  std::vector<id128> hashes_of(std::uint32_t m, std::uint32_t part) const {
    const bool no_bits = values.empty();
    const part_layout layout(group.boundaries, group.chunk_bytes, no_bits);
    const auto all = no_bits ? request.values : payload{values[m]};
    std::vector<id128> out;
    for (std::uint32_t k = 0; k < layout.grid(part).count(); ++k)
      out.push_back(hash_of_chunk(layout.slice(all, part, k)));
    return out;
  }
  round_commitment commitment_of(std::uint32_t m) const {
    round_commitment out;
    out.group = group.group;
    out.member = m;
    for (std::uint32_t p = 0; p < count(); ++p)
      out.parts.push_back(hash_of_chunks(hashes_of(m, p)));
    out.blocks = samples_of(m);
    out.secret = hidden(group.group, m, secret_of(m));
    sign(out);
    return out;
  }
  void sign(round_commitment& what) const {
    what.by = hosts[what.member]->sign(commitment_statement(what));
  }
  caf::strong_actor_ptr from(std::uint32_t m) const {
    return caf::actor_cast<caf::strong_actor_ptr>(addresses[m]);
  }
  template <class Message>
  std::vector<std::pair<std::uint32_t, Message>> sent_of() const {
    std::vector<std::pair<std::uint32_t, Message>> out;
    for (const auto& [to, what] : sent)
      if (what.template match_elements<Message>())
        out.emplace_back(to, what.template get_as<Message>(0));
    return out;
  }
  void commit_all() {
    for (std::uint32_t m = 1; m < count(); ++m) guard->on(commitment_of(m), from(m));
  }

  // round_io
  void send_to(const caf::actor& to, caf::message content) override {
    std::uint32_t m = 0;
    while (addresses[m] != to) ++m;
    sent.emplace_back(m, std::move(content));
  }
  void watch(const caf::actor&) override {}
  void probe(std::string_view) override {}
  duration time() const override { return now; }
  std::int64_t utc_ns() const override { return now.count(); }
  peer_id peer_of(const caf::strong_actor_ptr& address) const override {
    return hosts[self]->peer_of(address);
  }
  member_id member_of(const caf::strong_actor_ptr& address) const override {
    return hosts[self]->member_of(address);
  }
  bool is_banned(const member_id& who) const override { return hosts[self]->is_banned(who); }
  signature sign(const digest& statement) const override { return hosts[self]->sign(statement); }
  bool is_signed_by(const key256& key, const digest& statement,
                    const signature& by) const override {
    return hosts[self]->is_signed_by(key, statement, by);
  }
  void suspect(peer_id, std::string why) override { suspicions.push_back(std::move(why)); }
  void convict(peer_id, const contradiction&) override {}
  // guard_io
  void wake_in(duration) override {}
  void values_may_leave(const std::vector<std::uint32_t>& members) override {
    may_leave = true;
    without = members;
  }
  void leave_out(std::uint32_t member, const char*) override { left_out.push_back(member); }
  bool is_lost(std::uint32_t) const override { return false; }
  void convict(const evidence& proof, std::uint32_t) override { proofs.push_back(proof); }
  void convict(const verdict& proof, std::uint32_t) override { verdicts.push_back(proof); }
  void recompute(recomputation what) override { duties.push_back(std::move(what)); }
  void note_failure(std::uint32_t member, std::string_view) override { failures.push_back(member); }
  void observe(const observation&) override {}
};

using list = std::vector<std::uint32_t>;

} // namespace

TEST_CASE("no value leaves before all members have committed, or their time is over") {
  lone_guard f;
  CHECK(f.sent_of<round_commitment>().size() == f.count() - 1);
  f.guard->on(f.commitment_of(1), f.from(1));
  f.guard->on(f.commitment_of(2), f.from(2));
  CHECK(!f.may_leave);
  f.now += f.config.guard->commit_time / 2;
  f.guard->tick();
  CHECK(!f.may_leave);
  SUBCASE("the last one comes") {
    f.guard->on(f.commitment_of(3), f.from(3));
    CHECK(f.may_leave);
    CHECK(f.without.empty());
  }
  SUBCASE("the last one does not come") {
    f.now += f.config.guard->commit_time / 2;
    f.guard->tick();
    CHECK(f.may_leave);
    CHECK(f.without == list{3});
  }
  SUBCASE("the last one is gone") {
    f.guard->on_down(caf::actor_cast<caf::actor_addr>(f.addresses[3]));
    CHECK(f.may_leave);
    CHECK(f.without == list{3});
  }
  CHECK(f.sent_of<commitments_seen>().size() >= 2);
  CHECK(f.left_out.empty());
  CHECK(f.suspicions.empty());
}

TEST_CASE("a commitment that does not fit the roster costs its member the round, and no more") {
  lone_guard f;
  auto wrong = f.commitment_of(2);
  bool ours = true;
  SUBCASE("other samples") {
    wrong.blocks = {{500, 3}};
  }
  SUBCASE("fewer samples") {
    wrong.blocks = {{200, 2}};
  }
  SUBCASE("a sample twice") {
    wrong.blocks = {{200, 2}, {201, 1}};
  }
  SUBCASE("a part is missing") {
    wrong.parts.pop_back();
  }
  SUBCASE("no parts") {
    wrong.parts.clear();
  }
  SUBCASE("no signature") {
    wrong.by = {};
    ours = false;
  }
  if (ours) f.sign(wrong);
  f.guard->on(wrong, f.from(2));
  CHECK(f.left_out == list{2});
  CHECK(f.proofs.empty());
  f.guard->on(f.commitment_of(1), f.from(1));
  f.guard->on(f.commitment_of(3), f.from(3));
  CHECK(f.may_leave);
  CHECK(f.without == list{2});
}

TEST_CASE("blocks in another order than the roster's samples are the same samples") {
  lone_guard f;
  auto blocks = f.commitment_of(2);
  blocks.blocks = {{202, 1}, {200, 2}};
  f.sign(blocks);
  f.guard->on(blocks, f.from(2));
  CHECK(f.left_out.empty());
  CHECK(f.guard->has_committed(2));
}

TEST_CASE("another member's or a stranger's messages count for nobody") {
  lone_guard f;
  f.guard->on(f.commitment_of(2), f.from(1));
  CHECK(!f.guard->has_committed(2));
  f.guard->on(f.commitment_of(2), nullptr);
  CHECK(!f.guard->has_committed(2));
  CHECK(f.suspicions.size() == 2);
}

TEST_CASE("two commitments of one member are evidence that anybody can check") {
  lone_guard f;
  f.commit_all();
  auto other = f.commitment_of(3);
  other.secret.low ^= 1;
  f.sign(other);
  const auto is_evidence = [&] {
    REQUIRE(f.proofs.size() == 1);
    CHECK(f.proofs[0].culprit == f.hosts[3]->key());
    CHECK(holds(f.proofs[0], [&](const auto& key, const auto& what, const auto& by) {
      return f.hosts[1]->is_signed_by(key, what, by);
    }));
  };
  SUBCASE("it sends both") {
    f.guard->on(other, f.from(3));
    is_evidence();
  }
  SUBCASE("another member has the second one, and its echo says so") {
    f.guard->on(commitments_seen{f.group.group, 1, {7, 7}}, f.from(1));
    const auto given = f.sent_of<commitments_given>();
    REQUIRE(given.size() == 1);
    CHECK(given[0].first == 1);
    CHECK(given[0].second.all.size() == f.count());
    // Once: its line is not for others to fill.
    f.guard->on(commitments_seen{f.group.group, 1, {8, 8}}, f.from(1));
    CHECK(f.sent_of<commitments_given>().size() == 1);
    f.guard->on(commitments_given{f.group.group, 1, {f.commitment_of(2), other}}, f.from(1));
    is_evidence();
  }
  SUBCASE("a commitment that nobody signed proves nothing") {
    other.secret.low ^= 2;
    f.guard->on(commitments_given{f.group.group, 1, {other}}, f.from(1));
    CHECK(f.proofs.empty());
    CHECK(f.suspicions.size() == 1);
  }
}

TEST_CASE("a reducer takes only the chunks that their sender has committed to") {
  lone_guard f;
  f.commit_all();
  const part_layout layout(f.group.boundaries, f.group.chunk_bytes, false);
  const auto chunk = [&](std::uint32_t m, std::uint32_t k) {
    return layout.slice(payload{f.values[m]}, self, k);
  };
  CHECK(f.guard->fits(1, self, 0, chunk(1, 0)) == round_guard::fit::unknown);
  f.guard->on(chunk_hashes{f.group.group, 1, self, f.hashes_of(1, self)}, f.from(1));
  CHECK(f.guard->fits(1, self, 0, chunk(1, 0)) == round_guard::fit::right);
  CHECK(f.guard->fits(1, self, 1, chunk(1, 1)) == round_guard::fit::right);
  CHECK(f.guard->fits(1, self, 1, chunk(1, 0)) == round_guard::fit::wrong);
  CHECK(f.guard->fits(1, self, 0, chunk(2, 0)) == round_guard::fit::wrong);
  // Hashes of other values.
  f.guard->on(chunk_hashes{f.group.group, 2, self, f.hashes_of(3, self)}, f.from(2));
  CHECK(f.left_out == list{2});
  f.guard->on(chunk_hashes{f.group.group, 3, 77, {}}, f.from(3));
  CHECK(f.left_out == list{2, 3});
  CHECK(f.proofs.empty());
}

TEST_CASE("two results of one part by its reducer are evidence, also if others pass them on") {
  lone_guard f;
  f.commit_all();
  const auto sealed_by = [&](std::uint32_t m, std::uint64_t root) {
    part_sealed out{f.group.group, m, m, {root, 1}, {}};
    out.by = f.hosts[m]->sign(part_statement(out));
    return out;
  };
  f.guard->on(sealed_by(2, 5), f.from(2));
  f.guard->on(sealed_by(2, 5), f.from(1));
  CHECK(f.proofs.empty());
  // A member that voted for another version gets what we have.
  f.guard->disagrees(1);
  CHECK(f.sent_of<part_sealed>().size() == 1);
  f.guard->disagrees(1);
  CHECK(f.sent_of<part_sealed>().size() == 1);
  f.guard->on(sealed_by(2, 6), f.from(1));
  REQUIRE(f.proofs.size() == 1);
  CHECK(f.proofs[0].culprit == f.hosts[2]->key());
  auto forged = sealed_by(3, 9);
  forged.root = {10, 1};
  f.guard->on(forged, f.from(1));
  CHECK(f.suspicions.size() == 1);
}

TEST_CASE("beside ALBERT's gradient the guard's messages are below 2 % of a round's bytes") {
  constexpr std::uint64_t albert_large = 17'700'000; // values
  for (const std::uint32_t members : {16u, 64u, 256u}) {
    lone_guard f(members, albert_large);
    f.commit_all();
    REQUIRE(f.may_leave);
    const part_layout layout(f.group.boundaries, f.group.chunk_bytes, true);
    round_result result;
    result.outcome = outcome::ok;
    result.values = f.request.values;
    list all;
    for (std::uint32_t m = 0; m < members; ++m) all.push_back(m);
    std::uint64_t plain = 0;
    for (std::uint32_t p = 0; p < members; ++p) {
      result.parts.push_back({f.group.boundaries[p], f.group.boundaries[p + 1], all, 0, p});
      const auto bytes = layout.grid(p).part_bytes;
      plain += p == self ? bytes * (members - 1) : bytes; // replies, and own slices
      if (p != self) f.guard->send_hashes(p, p);
    }
    f.guard->seal(self, std::vector<id128>(layout.grid(self).count()));
    f.guard->ended(result, all);
    for (std::uint32_t m = 1; m < members; ++m)
      f.guard->on(secret_revealed{f.group.group, m, lone_guard::secret_of(m)}, f.from(m));
    byte_counter guarded;
    const auto count = [&]<class Message>(const Message*) {
      for (auto& [to, what] : f.sent_of<Message>()) guarded(what);
    };
    count(static_cast<round_commitment*>(nullptr));
    count(static_cast<commitments_seen*>(nullptr));
    count(static_cast<chunk_hashes*>(nullptr));
    count(static_cast<part_sealed*>(nullptr));
    count(static_cast<secret_revealed*>(nullptr));
    CHECK(f.sent_of<part_checks>().size() == members - 1);
    count(static_cast<part_checks*>(nullptr));
    const auto share = static_cast<double>(guarded.bytes()) / static_cast<double>(plain);
    MESSAGE(fmt::format("{} members: {} bytes beside {}, {:.3f} %", members, guarded.bytes(), plain,
                        100 * share));
    CHECK(share < 0.02);
    CHECK(f.suspicions.empty());
  }
}
