#include "actors/data/data_shard.hpp"
#include "actors/data/observations.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/dht/dht_node.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>

#include <array>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

using list = std::vector<sample_range>;

// Every byte of a sample encodes its index.
struct numbered_source : sample_source {
  std::uint32_t size = 16;
  bool size_only = false;
  std::uint32_t sample_bytes() const override { return size; }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    for (auto& b : out) b = static_cast<std::byte>(index);
  }
  bool is_size_only() const override { return size_only; }
};

using client_log = collector<samples, lease_lost>::log;

/// Peers 1 to 4 and the shard. The ids of peers follow from their hosts.
struct fixture {
  mini_world world;
  std::array<mini_host*, 4> hosts{&world.add_host("peer 1"), &world.add_host("peer 2"),
                                  &world.add_host("peer 3"), &world.add_host("peer 4")};
  mini_host& here = world.add_host("shard");
  std::shared_ptr<numbered_source> source = std::make_shared<numbered_source>();
  std::shared_ptr<sample_ledger> ledger;
  caf::actor dht, shard;
  std::map<peer_id, caf::actor> clients;
  std::map<peer_id, std::shared_ptr<client_log>> logs;

  explicit fixture(data_shard_config settings = {}) {
    settings.lease_time = 16s;
    settings.chunk_bytes = 64;
    ledger = std::make_shared<sample_ledger>(settings.lease_time);
    dht = world.spawn<dht_node>(here, dht_config{});
    settings.dht = dht;
    shard = world.spawn<data_shard>(here, settings, source, ledger);
    world.settle();
  }
  caf::actor& client(peer_id peer) {
    if (!clients.count(peer)) {
      logs[peer] = std::make_shared<client_log>();
      clients[peer] = world.spawn<collector<samples, lease_lost>>(*hosts.at(peer - 1), logs[peer]);
    }
    return clients[peer];
  }
  void request(peer_id peer, std::uint32_t credit, list held = {}) {
    tell(peer, sample_request{client(peer), credit, std::move(held)});
  }
  /// Sends a message from the host of `peer`.
  template <class Message>
  void tell(peer_id peer, Message m) {
    caf::send_as(client(peer), shard, std::move(m));
    world.settle();
  }
  /// The ranges that arrived since the last call.
  list got(peer_id peer) {
    list out;
    for (auto& s : std::get<0>(*logs.at(peer))) out.push_back(s.range);
    std::get<0>(*logs.at(peer)).clear();
    return out;
  }
  list lost(peer_id peer) {
    list out;
    for (auto& l : std::get<1>(*logs.at(peer)))
      for (auto& r : l.ranges) append_range(out, r.first, r.end());
    std::get<1>(*logs.at(peer)).clear();
    return out;
  }
  std::size_t bad() { return world.observed<misbehaved>().size(); }
  /// All transitions so far, as 'leased 1: 0+4'.
  std::vector<std::string> moves() {
    constexpr std::array names{"leased", "committed", "returned", "partial"};
    std::vector<std::string> out;
    for (auto& [who, m] : world.observed<samples_moved>()) {
      std::string line =
          names.at(static_cast<std::size_t>(m.to)) + (" " + std::to_string(m.peer)) + ":";
      for (auto& r : m.samples)
        line += " " + std::to_string(r.first) + "+" + std::to_string(r.count);
      out.push_back(line);
    }
    return out;
  }
};

} // namespace

TEST_CASE("the shard streams as many samples as the credit allows, in chunks") {
  fixture f;
  f.request(1, 10);
  const auto& messages = std::get<0>(*f.logs.at(1));
  REQUIRE(messages.size() == 3);
  for (const auto& m : messages) {
    REQUIRE(m.data.size() == m.range.count * 16u);
    for (std::size_t i = 0; i < m.data.size(); ++i)
      CHECK(static_cast<std::uint64_t>(m.data.bytes()[i]) == m.range.first + i / 16);
  }
  CHECK(f.got(1) == list{{0, 4}, {4, 4}, {8, 2}});
  f.request(2, 1);
  CHECK(f.got(2) == list{{10, 1}});
  f.request(2, 0);
  CHECK(f.got(2).empty());
  CHECK(f.moves() == std::vector<std::string>{"leased 1: 0+10", "leased 2: 10+1"});
}

TEST_CASE("samples larger than a chunk travel alone, and size-only ones have only a size") {
  fixture f;
  f.source->size = 100;
  f.source->size_only = true;
  f.request(1, 2);
  for (const auto& m : std::get<0>(*f.logs.at(1))) {
    CHECK(m.data.is_size_only());
    CHECK(m.data.size() == 100);
  }
  CHECK(f.got(1) == list{{0, 1}, {1, 1}});
}

TEST_CASE(
    "a lease that is not renewed expires, its peer is told, and another peer gets the samples") {
  fixture f;
  f.request(1, 4);
  f.request(2, 4);
  f.got(2);
  f.world.run_for(8s);
  f.request(2, 0, {{4, 3}});
  f.world.run_for(8s);
  CHECK(f.lost(1) == list{{0, 4}});
  CHECK(f.lost(2) == list{{7, 1}});
  f.request(3, 6);
  CHECK(f.got(3) == list{{0, 4}, {7, 2}});
  // A peer that comes back still believes that it holds its leases.
  f.request(1, 0, {{0, 4}});
  CHECK(f.lost(1) == list{{0, 4}});
  // The timer checks every sixteenth of a lease.
  f.world.run_for(8s + 1s);
  CHECK(f.lost(2) == list{{4, 3}});
  CHECK(f.bad() == 0);
  f.world.run_for(1h);
  CHECK(f.ledger->count(index_state::kind::returned) == 9);
}

TEST_CASE("survivors commit the samples of a dead peer, or the shard leases them again") {
  fixture f;
  f.request(1, 4);
  f.request(2, 4);
  // Both leases end. Peer 2 lives and asks again.
  f.world.run_for(17s);
  const commit round{1, {7, 7}, 2, {{1, {{0, 2}}, 2}, {2, {{4, 4}}, 1}}};
  f.tell(1, round);
  f.tell(2, round);
  f.request(3, 4);
  f.got(1);
  CHECK(f.got(3) == list{{2, 2}, {8, 2}});
  CHECK(f.moves() == std::vector<std::string>{"leased 1: 0+4", "leased 2: 4+4", "returned 1: 0+4",
                                              "returned 2: 4+4", "committed 1: 0+2",
                                              "partial 2: 4+4", "leased 3: 2+2 8+2"});
  const auto moved = f.world.observed<samples_moved>()[5].second;
  CHECK(moved.epoch == 1);
  CHECK(moved.group == group_id{7, 7});
  CHECK(moved.parts_included == 1);
  CHECK(moved.parts_total == 2);
  CHECK(f.world.observed<samples_reported>().empty());
  CHECK(f.bad() == 0);
}

TEST_CASE("samples that two peers may have used are reported, and the second peer loses them") {
  fixture f;
  f.request(1, 4);
  f.world.run_for(17s);
  f.request(2, 4);
  f.tell(1, commit{1, {7, 7}, 1, {{1, {{0, 3}}, 1}}});
  CHECK(f.lost(2) == list{{0, 3}});
  REQUIRE(f.world.observed<samples_reported>().size() == 1);
  CHECK(f.world.observed<samples_reported>()[0].second.samples == list{{0, 3}});
  f.tell(2, commit{1, {8, 8}, 1, {{2, {{0, 4}}, 1}}});
  CHECK(f.world.observed<samples_reported>().size() == 2);
  CHECK(f.ledger->count(index_state::kind::committed) == 4);
}

TEST_CASE("samples that no part holds are returned, and their peer is told") {
  fixture f;
  f.request(1, 4);
  f.tell(1, commit{1, {7, 7}, 3, {{1, {{0, 4}}, 0}}});
  CHECK(f.lost(1) == list{{0, 4}});
  f.tell(1, samples_returned{{{0, 4}}}); // crosses the shard's message, which is no fault
  CHECK(f.bad() == 0);
  f.request(2, 4);
  CHECK(f.got(2) == list{{0, 4}});
}

TEST_CASE("returned samples are leased again first") {
  fixture f;
  f.request(1, 8);
  f.tell(1, samples_returned{{{6, 2}, {1, 2}}});
  f.request(2, 5);
  CHECK(f.got(2) == list{{1, 2}, {6, 3}}); // then new ones
}

TEST_CASE("hostile requests are counted and change nothing") {
  data_shard_config limits;
  limits.max_credit = 100;
  limits.max_leased = 150;
  limits.max_ranges = 4;
  limits.max_entries = 2;
  fixture f(limits);
  f.request(1, 8);
  f.request(2, 8);
  f.got(1), f.got(2);
  const auto before = f.ledger->snapshot();
  std::size_t bad = 0;
  auto refused = [&](auto message) {
    f.tell(1, std::move(message));
    CHECK(f.bad() == ++bad);
    REQUIRE(f.ledger->snapshot().size() == before.size());
    CHECK(f.ledger->high_water() == 16);
    CHECK(f.ledger->leased_by(1) == 8);
    CHECK(f.ledger->leased_by(2) == 8);
  };
  const auto top = std::numeric_limits<std::uint64_t>::max();
  const auto& me = f.client(1);
  refused(sample_request{me, 0xffff'ffffu, {}});
  refused(sample_request{me, 101, {}});
  refused(sample_request{nullptr, 1, {}});
  refused(sample_request{me, 1, {{0, 0}}});
  refused(sample_request{me, 1, {{0, 2}, {1, 2}}});
  refused(sample_request{me, 1, {{top - 2, 3}}});
  refused(sample_request{me, 1, list(5, {0, 1})});
  refused(sample_request{me, 0, {{8, 8}}});             // another peer's lease
  refused(sample_request{me, 0, {{16, 0xffff'ffffu}}}); // no peer's lease
  refused(samples_returned{{{8, 8}}});
  refused(samples_returned{{{top - 0xffff'ffffu, 0xffff'ffffu}}});
  refused(samples_returned{{{top, 0xffff'ffffu}}});
  refused(samples_returned{list(100'000, {3, 1})});
  refused(commit{1, {1, 1}, 0, {}});
  refused(commit{1, {1, 1}, 1, {{1, {{0, 8}}, 2}}});
  refused(commit{1, {1, 1}, 1, {{1, {{8, 8}}, 1}}});
  refused(commit{1, {1, 1}, 1, {{99, {{0, 16}}, 1}}});
  refused(
      commit{1,
             {1, 1},
             1,
             {{1, {{0, 8}}, 1}, {2, {{top, 2}}, 1}}}); // one wrong entry refuses the whole commit
  refused(commit{1, {1, 1}, 1, std::vector<commit_entry>(3)});
  refused(work_done{4});
  CHECK(f.got(1).empty());
  CHECK(f.lost(1).empty());

  f.request(1, 100);
  f.got(1);
  f.request(1, 100); // would make 208 leases
  CHECK(f.bad() == ++bad);
  CHECK(f.got(1).empty());
  f.request(1, 42);
  CHECK(f.got(1).size() == 11);
  CHECK(f.bad() == bad);
}

TEST_CASE("data shard: a peer cannot return or renew another peer's samples") {
  fixture f;
  f.request(1, 8);
  f.tell(4, samples_returned{{{0, 8}}});
  CHECK(f.ledger->leased_by(1) == 8);
  f.request(4, 0, {{0, 8}});
  CHECK(f.ledger->leased_by(4) == 0);
  CHECK(f.ledger->leased_by(1) == 8);
  REQUIRE(f.bad() == 2);
  for (const auto& [by, what] : f.world.observed<misbehaved>()) CHECK(what.culprit == 4);
  // A message without a sender changes nothing, either.
  f.world.send(f.shard, samples_returned{{{0, 8}}});
  f.world.send(f.shard, sample_request{f.client(1), 8, {}});
  f.world.send(f.shard, commit{1, {7, 7}, 1, {{1, {{0, 8}}, 1}}});
  f.world.settle();
  CHECK(f.bad() == 5);
  CHECK(f.ledger->leased_by(1) == 8);
}

TEST_CASE("data shard: a request cannot send samples to another host") {
  fixture f;
  f.tell(4, sample_request{f.client(1), 64, {}});
  CHECK(f.got(1).empty());
  CHECK(f.ledger->high_water() == 0);
  REQUIRE(f.bad() == 1);
  CHECK(f.world.observed<misbehaved>()[0].second.culprit == 4);
}

TEST_CASE("data shard: the limit of leased samples is one for all incarnations of a member") {
  data_shard_config limits;
  limits.max_leased = 100;
  fixture f(limits);
  auto log = std::make_shared<client_log>();
  // The same member: a key follows from the name.
  auto& again = f.world.add_host("peer 1");
  const auto second = f.world.spawn<collector<samples, lease_lost>>(again, log);
  f.request(1, 60);
  CHECK(f.ledger->leased_by(1) == 60);
  const auto ask = [&](std::uint32_t credit) {
    caf::send_as(second, f.shard, sample_request{second, credit, {}});
    f.world.settle();
  };
  ask(41);
  CHECK(f.ledger->leased_by(again.id()) == 0);
  CHECK(f.bad() == 1);
  ask(40);
  CHECK(f.ledger->leased_by(again.id()) == 40);
  f.request(2, 100);
  CHECK(f.ledger->leased_by(2) == 100);
  CHECK(f.bad() == 1);
}

TEST_CASE("data shard: a member that returns all it gets has to wait, and others do not") {
  data_shard_config limits;
  limits.max_leased = 10;
  fixture f(limits);
  std::uint64_t got = 0;
  for (int i = 0; i < 40; ++i) {
    f.request(1, 10);
    const auto held = f.got(1);
    got += index_count(held);
    f.tell(1, samples_returned{held});
    f.world.settle();
  }
  // 16 times max_leased.
  CHECK(got == 160);
  CHECK(f.bad() > 0);
  f.request(2, 10);
  CHECK(index_count(f.got(2)) == 10);
  f.world.run_for(2s);
  f.request(1, 10);
  CHECK(index_count(f.got(1)) == 10);
}

TEST_CASE("data shard: samples that end in rounds cost a member nothing") {
  data_shard_config limits;
  limits.max_leased = 10;
  fixture f(limits);
  for (std::uint64_t i = 0; i < 40; ++i) {
    f.request(1, 10);
    const auto held = f.got(1);
    REQUIRE(index_count(held) == 10);
    f.tell(1, commit{i, {i, i}, 1, {{1, held, 1}}});
  }
  CHECK(f.bad() == 0);
}

TEST_CASE("data shard: a member can claim only so many samples of an earlier shard") {
  data_shard_config limits;
  limits.max_leased = 100;
  fixture f(limits);
  // The ledger of the earlier shard is lost.
  caf::anon_send_exit(f.shard, caf::exit_reason::kill);
  f.ledger = std::make_shared<sample_ledger>(16s, 7);
  limits.lease_time = 16s;
  f.shard = f.world.spawn<data_shard>(f.here, limits, f.source, f.ledger);
  f.world.settle();
  f.request(1, 0, {{40, 60}});
  CHECK(f.ledger->leased_by(1) == 60);
  CHECK(f.bad() == 0);
  std::vector<commit_entry> invented;
  for (std::uint64_t i = 0; i < 1000; ++i) invented.push_back({1000 + i, {{1000 + 2 * i, 1}}, 1});
  f.tell(4, commit{1, {7, 7}, 1, invented});
  CHECK(f.bad() == 1);
  CHECK(f.ledger->count(index_state::kind::committed) == 0);
  invented.resize(100);
  f.tell(4, commit{1, {7, 7}, 1, invented});
  CHECK(f.ledger->count(index_state::kind::committed) == 100);
  f.tell(4, commit{1, {8, 8}, 1, {{4, {{9000, 1}}, 1}}});
  f.tell(4, samples_returned{{{9100, 60}}});
  f.request(4, 0, {{9200, 60}});
  CHECK(f.bad() == 4);
  CHECK(f.ledger->high_water() == 1000 + 2 * 99 + 1);
}

TEST_CASE("data shard: the ranges of a whole commit have a limit") {
  data_shard_config limits;
  limits.max_ranges = 4;
  fixture f(limits);
  f.request(1, 8);
  f.tell(1, commit{1, {1, 1}, 1, {{1, {{0, 1}, {2, 1}, {4, 1}}, 1}, {1, {{6, 1}, {8, 1}}, 1}}});
  CHECK(f.bad() == 1);
  CHECK(f.ledger->count(index_state::kind::committed) == 0);
}

TEST_CASE("data shard: one member cannot flood the reports") {
  fixture f;
  f.request(1, 100);
  list held;
  for (std::uint64_t i = 0; i < 100; i += 2) held.push_back({i, 1});
  f.tell(1, commit{1, {1, 1}, 1, {{1, held, 1}}});
  // Each commit contradicts the first one.
  for (std::uint64_t i = 0; i < 200; ++i) f.tell(1, commit{1, {2, i}, 1, {{1, held, 1}}});
  // The limit is 4096, and the last commit may pass it.
  CHECK(f.ledger->reports().size() <= 4096 + held.size());
  CHECK(f.ledger->reports().size() >= 4096);
  CHECK(f.bad() > 100);
  f.request(2, 4);
  f.tell(2, commit{1, {3, 3}, 1, {{2, {{100, 4}}, 1}}});
  CHECK(f.ledger->count(index_state::kind::committed) == held.size() + 4);
}

TEST_CASE(
    "data shard: one member cannot fill the memory with claims that backups have to confirm") {
  data_shard_config settings;
  settings.replication.replicas = 2;
  settings.find_shard = [](const caf::strong_actor_ptr& address, std::string_view) {
    return address ? std::optional<std::size_t>(1) : std::nullopt;
  };
  fixture f(settings);
  f.request(1, 8);
  // Peer 2 says that it is a backup, and confirms nothing.
  f.tell(2, replica_hello{{1, f.client(2)}, 1, 0, 0, 0});
  for (int n = 0; n < 1000; ++n) f.tell(4, samples_returned{{{0, 8}}});
  f.world.run_for(1min);
  const auto seen = f.world.observed<misbehaved>();
  const auto of = [&](peer_id culprit) {
    return std::count_if(seen.begin(), seen.end(),
                         [&](const auto& one) { return one.second.culprit == culprit; });
  };
  CHECK(of(4) > 0);
  CHECK(of(4) <= 64);
  CHECK(f.ledger->leased_by(1) == 0); // expired meanwhile
  // Later claims are looked at again.
  f.tell(4, samples_returned{{{0, 8}}});
  CHECK(f.bad() == seen.size() + 1);
}

TEST_CASE("the shard is in the DHT as long as it lives") {
  fixture f;
  auto log = std::make_shared<collector<found>::log>();
  const auto asker = f.world.spawn<collector<found>>(f.world.add_host("asker"), log);
  for (int minute = 0; minute < 4; ++minute) {
    f.world.send(f.dht, lookup{std::string{data_shard_key}, asker, 1});
    f.world.run_for(1min);
  }
  REQUIRE(std::get<0>(*log).size() == 4);
  for (const auto& answer : std::get<0>(*log)) {
    REQUIRE(answer.records.size() == 1);
    CHECK(answer.records[0]->subkey == "shard#5");
    CHECK(answer.records[0]->address == f.shard);
  }
  std::get<0>(*log).clear();
  caf::anon_send_exit(f.shard, caf::exit_reason::kill);
  f.world.run_for(1min);
  f.world.send(f.dht, lookup{std::string{data_shard_key}, asker, 1});
  f.world.settle();
  REQUIRE(std::get<0>(*log).size() == 1);
  CHECK(std::get<0>(*log)[0].records.empty());
}

TEST_CASE("copies of samples come without a lease, and each member may ask for so many") {
  fixture f({.max_leased = 16});
  f.request(1, 4);
  f.got(1);
  auto log = std::make_shared<collector<sample_copies>::log>();
  const auto checker = f.world.spawn<collector<sample_copies>>(*f.hosts[1], log);
  const auto ask = [&](list what, const caf::actor& to) {
    caf::send_as(f.client(2), f.shard, copies_wanted{to, std::move(what)});
    f.world.settle();
  };
  const auto& copies = std::get<0>(*log);
  ask({{2, 6}, {100, 1}}, checker);
  REQUIRE(copies.size() == 3);
  CHECK(copies[0].range == sample_range{2, 4});
  CHECK(copies[1].range == sample_range{6, 2});
  CHECK(copies[2].range == sample_range{100, 1});
  for (const auto& m : copies)
    for (std::size_t i = 0; i < m.data.size(); ++i)
      CHECK(static_cast<std::uint64_t>(m.data.bytes()[i]) == m.range.first + i / 16);
  // Nothing was leased, and peer 1 keeps its own.
  CHECK(f.moves() == std::vector<std::string>{"leased 1: 0+4"});
  CHECK(f.bad() == 0);
  ask({{0, 1}}, f.client(1)); // to another host
  CHECK(f.bad() == 1);
  ask({{0, 2}, {1, 2}}, checker);
  CHECK(f.bad() == 2);
  ask({{0, 250}}, checker); // 16 times as many as it may lease, less the first seven
  CHECK(f.bad() == 3);
  CHECK(copies.size() == 3);
  f.world.run_for(16s);
  ask({{0, 250}}, checker);
  CHECK(f.bad() == 3);
  CHECK(copies.size() == 3 + 63);
}
