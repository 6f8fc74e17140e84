// Commits at a data shard that believes only proven rounds.
#include "actors/data/commit_proofs.hpp"
#include "actors/data/data_shard.hpp"
#include "tests/actors/support/certificates.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

using list = std::vector<sample_range>;
using client = collector<samples, lease_lost, commit_received, proof_wanted>;

struct four_bytes final : sample_source {
  std::uint32_t sample_bytes() const override { return 4; }
  void read(std::uint64_t, std::span<std::byte>) const override {}
  bool is_size_only() const override { return true; }
};

/// Four peers with eight leased samples each, and a shard.
struct fixture {
  mini_world world;
  std::vector<mini_host*> hosts;
  std::vector<caf::actor> clients;
  std::vector<std::shared_ptr<client::log>> logs;
  std::shared_ptr<sample_ledger> ledger;
  caf::actor shard;

  explicit fixture(data_shard_config settings = {}) {
    settings.proves_rounds = true;
    ledger = std::make_shared<sample_ledger>(settings.lease_time);
    for (int i = 0; i < 4; ++i) {
      hosts.push_back(&world.add_host("peer " + std::to_string(i)));
      logs.push_back(std::make_shared<client::log>());
      clients.push_back(world.spawn<client>(*hosts.back(), logs.back()));
    }
    shard = world.spawn<data_shard>(world.add_host("shard"), settings,
                                    std::make_shared<four_bytes>(), ledger);
    for (std::uint32_t m = 0; m < 4; ++m) tell(m, sample_request{clients[m], 8, {}});
  }
  template <class Message>
  void tell(std::uint32_t from, Message what) {
    caf::send_as(clients[from], shard, std::move(what));
    world.settle();
  }
  peer_id peer(std::uint32_t m) const { return hosts[m]->id(); }
  static list leased(std::uint32_t m) { return {{8 * m, 8}}; }
  std::vector<signer> signers(const std::vector<std::uint32_t>& of) {
    std::vector<signer> out;
    for (const auto m : of) out.push_back({hosts[m], clients[m]});
    return out;
  }
  /// The certificate of a round of these members with their samples. `change` comes before the
  /// members sign.
  round_certificate round(const std::vector<std::uint32_t>& of,
                          const std::function<void(round_certificate&)>& change = {}) {
    auto out = certify(signers(of), {3, {1, 1}}, {5, 5});
    for (std::size_t i = 0; i < of.size(); ++i) out.roster.members[i].samples = leased(of[i]);
    if (change) change(out);
    sign(out, signers(of));
    return out;
  }
  commit commit_by(const round_certificate& of, const std::vector<std::uint32_t>& members) {
    commit out;
    out.epoch = of.roster.epoch;
    out.group = of.round();
    out.parts_total = 2;
    for (const auto m : members) out.entries.push_back({peer(m), leased(m), 2});
    return out;
  }
  commit_proof proof(const round_certificate& of) { return {of.round(), 0, 0, sent_form(of), {}}; }
  std::uint64_t committed() const { return ledger->count(index_state::kind::committed); }
  std::uint64_t leased_samples() const { return ledger->count(index_state::kind::leased); }
  std::size_t bad() { return world.observed<misbehaved>().size(); }
  std::size_t confirmed(std::uint32_t m) {
    return std::get<std::vector<commit_received>>(*logs[m]).size();
  }
  std::size_t asked(std::uint32_t m) {
    return std::get<std::vector<proof_wanted>>(*logs[m]).size();
  }
};

} // namespace

TEST_CASE("commit proofs: a round that never was ends no lease") {
  fixture f;
  for (const std::uint32_t parts : {0u, 1u, 2u})
    f.tell(3, commit{3, {7, parts}, 2, {{f.peer(0), fixture::leased(0), parts}}});
  CHECK(f.asked(3) == 0);
  f.world.run_for(20s);
  CHECK(f.asked(3) == 3);
  CHECK(f.committed() == 0);
  CHECK(f.ledger->leased_by(f.peer(0)) == 8);
  CHECK(std::get<std::vector<lease_lost>>(*f.logs[0]).empty());
  // Silence accuses nobody: the questions may have been lost. Nor is it an answer.
  CHECK(f.bad() == 0);
  CHECK(f.confirmed(3) == 0);
}

TEST_CASE("commit proofs: a commit with the certificate of its round is final") {
  fixture f;
  const auto round = f.round({0, 1, 2});
  f.tell(0, proven_commit{f.commit_by(round, {0, 1, 2}), sent_form(round)});
  CHECK(f.committed() == 24);
  CHECK(f.confirmed(0) == 1);
  // The others need no proof any more.
  f.tell(2, f.commit_by(round, {0, 1, 2}));
  CHECK(f.confirmed(2) == 1);
  CHECK(f.asked(0) + f.asked(1) + f.asked(2) == 0);
  CHECK(f.bad() == 0);
}

TEST_CASE("commit proofs: a plain commit waits until one member gives the proof") {
  fixture f;
  const auto round = f.round({0, 1, 2});
  for (const std::uint32_t m : {0, 1, 2}) f.tell(m, f.commit_by(round, {0, 1, 2}));
  f.world.run_for(1100ms);
  CHECK(f.committed() == 0);
  CHECK(f.asked(0) == 1);
  CHECK(f.asked(1) + f.asked(2) == 0);
  f.tell(0, f.proof(round));
  CHECK(f.committed() == 24);
  for (const std::uint32_t m : {0, 1, 2}) CHECK(f.confirmed(m) == 1);
  CHECK(f.bad() == 0);
}

TEST_CASE("commit proofs: silent members and members without proof delay a round and do not stop "
          "it") {
  fixture f;
  const auto round = f.round({0, 1, 2});
  f.tell(3, commit{3, round.round(), 1, {}}); // a silent liar is first
  f.tell(0, f.commit_by(round, {0, 1, 2}));
  f.tell(1, f.commit_by(round, {0, 1, 2}));
  f.world.run_for(1100ms);
  CHECK(f.asked(3) == 1);
  CHECK(f.asked(0) == 0);
  f.world.run_for(6s);
  REQUIRE(f.asked(0) == 1);
  f.tell(0, commit_proof{round.round(), 1, 0, {}, {}});
  CHECK(f.confirmed(0) == 1);
  REQUIRE(f.asked(1) == 1);
  f.tell(1, f.proof(round));
  CHECK(f.committed() == 24);
  CHECK(f.confirmed(1) == 1);
}

TEST_CASE("commit proofs: a commit counts only for samples that its members signed") {
  using change = std::function<void(fixture&, commit&)>;
  const std::pair<const char*, change> wrong[] = {
      {"another epoch", [](auto&, commit& c) { ++c.epoch; }},
      {"other samples",
       [](auto&, commit& c) {
         c.entries[1].ranges = {{8, 7}};
       }},
      {"no samples", [](auto&, commit& c) { c.entries[1].ranges = {}; }},
      {"samples of another member",
       [](auto&, commit& c) {
         c.entries[1].ranges = {{16, 8}};
       }},
      {"a stranger",
       [](fixture& f, commit& c) {
         c.entries.push_back({f.peer(3), fixture::leased(3), 2});
       }},
      {"twice", [](auto&, commit& c) { c.entries.push_back(c.entries[0]); }},
      {"no parts", [](auto&, commit& c) { c.parts_total = 0; }},
      {"too many parts", [](auto&, commit& c) { c.entries[0].parts_included = 3; }},
  };
  for (const auto& each : wrong) {
    INFO(each.first);
    fixture f;
    const auto round = f.round({0, 1, 2});
    auto said = f.commit_by(round, {0, 1, 2});
    each.second(f, said);
    f.tell(0, proven_commit{said, sent_form(round)});
    CHECK(f.committed() == 0);
    CHECK(f.leased_samples() == 32);
    CHECK(f.bad() == 1);
    CHECK(f.confirmed(0) == 1);
    // The other members' commits count.
    f.tell(1, f.commit_by(round, {0, 1, 2}));
    CHECK(f.committed() == 24);
  }
}

TEST_CASE("commit proofs: a false certificate proves nothing") {
  using change = std::function<void(fixture&, round_certificate&)>;
  const std::pair<const char*, change> wrong[] = {
      {"too few votes", [](auto&, round_certificate& c) { c.votes.resize(2); }},
      {"a vote for another version", [](auto&, round_certificate& c) { ++c.version.low; }},
      {"a vote of another", [](auto&, round_certificate& c) { c.votes[1].by = c.votes[0].by; }},
      {"samples that were changed later",
       [](auto&, round_certificate& c) {
         c.roster.members[1].samples = {{16, 8}};
       }},
      {"another group", [](auto&, round_certificate& c) { ++c.roster.group.low; }},
      {"more votes than members",
       [](auto&, round_certificate& c) { c.votes.push_back(c.votes.back()); }},
      {"no members", [](auto&, round_certificate& c) { c.roster.members.clear(); }},
  };
  for (const auto& each : wrong) {
    INFO(each.first);
    fixture f;
    const auto round = f.round({0, 1, 2});
    auto other = round;
    each.second(f, other);
    f.tell(0, proven_commit{f.commit_by(round, {0, 1, 2}), sent_form(other)});
    CHECK(f.committed() == 0);
    CHECK(f.bad() == 1);
    f.world.run_for(1100ms);
    f.tell(0, commit_proof{round.round(), 0, 1, sent_form(other), {}});
    CHECK(f.committed() == 0);
    CHECK(f.bad() == 2);
    f.world.run_for(20s);
    CHECK(f.leased_samples() == 32);
  }
}

TEST_CASE("commit proofs: a member that makes rounds alone commits nothing of others") {
  fixture f;
  // It signs its own entry with the peer id of another.
  const auto posing =
      f.round({3}, [&](round_certificate& c) { c.roster.members[0].samples = fixture::leased(0); });
  f.tell(3, commit{3, posing.round(), 1, {{f.peer(0), fixture::leased(0), 1}}});
  auto masked = posing;
  masked.roster.members[0].peer = f.peer(0);
  masked.roster.members[0].by =
      f.hosts[3]->sign(member_statement(masked.roster, masked.roster.members[0]));
  masked.roster.group = group_of(masked.roster);
  masked.roster.by = f.hosts[3]->sign(group_statement(masked.roster));
  masked.votes[0].by = f.hosts[3]->sign(vote_statement(masked.round(), masked.version));
  f.tell(3, proven_commit{commit{3, masked.round(), 1, {{f.peer(0), fixture::leased(0), 1}}},
                          sent_form(masked)});
  // It claims the samples of another as its own.
  f.tell(3, proven_commit{commit{3, posing.round(), 1, {{f.peer(3), fixture::leased(0), 1}}},
                          sent_form(posing)});
  CHECK(f.committed() == 0);
  CHECK(f.ledger->leased_by(f.peer(0)) == 8);
  // A member of the group that declined has its samples elsewhere.
  auto declined = f.round({0, 3});
  declined.declines = {{0, f.hosts[0]->sign(decline_statement(declined.round()))}};
  declined.votes = {declined.votes[1]};
  f.tell(3, proven_commit{f.commit_by(declined, {0, 3}), sent_form(declined)});
  CHECK(f.ledger->leased_by(f.peer(0)) == 8);
  CHECK(f.ledger->leased_by(f.peer(3)) == 0);
}

TEST_CASE("commit proofs: impossible samples of one member do not stop the commits of the others") {
  fixture f;
  const list overlap{{8, 8}, {9, 2}};
  const auto round =
      f.round({0, 1, 2}, [&](round_certificate& c) { c.roster.members[1].samples = overlap; });
  auto said = f.commit_by(round, {0, 1, 2});
  said.entries[1].ranges = overlap;
  f.tell(0, proven_commit{said, sent_form(round)});
  CHECK(f.committed() == 16);
  CHECK(f.ledger->leased_by(f.peer(1)) == 8);
}

TEST_CASE("commit proofs: a member has a limit of waiting commits and of false certificates") {
  fixture f;
  for (std::uint64_t i = 0; i < commit_proofs::most_waiting + 10; ++i)
    f.tell(3, commit{3, {9, i}, 1, {}});
  CHECK(f.bad() == 10);
  f.world.run_for(1100ms);
  CHECK(f.asked(3) == commit_proofs::most_waiting);
  const auto round = f.round({0, 1, 2});
  auto other = round;
  other.votes.resize(2);
  for (int i = 0; i < 40; ++i) f.tell(3, proven_commit{f.commit_by(round, {0}), sent_form(other)});
  const auto all = f.world.observed<misbehaved>();
  CHECK(std::count_if(all.begin(), all.end(), [](const auto& one) {
          return one.second.why == "commit: too many false certificates";
        }) == 24);
  // The limits are the liar's own.
  f.tell(0, proven_commit{f.commit_by(round, {0, 1, 2}), sent_form(round)});
  CHECK(f.committed() == 24);
}
