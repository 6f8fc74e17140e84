// Replicas of a shard as plain state machines, and a network between them that consists of queues.
// Replicas die, are cut off and come back. No confirmed commit is lost, and no two replicas issue
// the same index. In the end there is one primary, and the others hold its ledger.
#include "actors/conduct/bugs_in_records.hpp"
#include "actors/data/ledger_rows.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/data/shard_replica.hpp"
#include "kernels/base/rng.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/actor_cast.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

class lab {
public:
  struct envelope {
    caf::message content;
    bool gone = false, dead = false;
  };
  struct member final : shard_replica::io {
    lab& in;
    std::size_t index, host;
    caf::actor handle;
    sample_ledger ledger;
    std::unique_ptr<shard_replica> replica;
    bool alive = true;
    std::set<std::size_t> watches;
    std::uint64_t lost_ledgers = 0;
    std::vector<std::pair<peer_id, std::uint32_t>> owed;

    member(lab& of, std::size_t at, std::size_t on, caf::actor address, std::uint64_t index_block,
           const replica_config& config)
        : in(of), index(at), host(on), handle(std::move(address)),
          ledger(of.lease_time, index_block),
          replica(std::make_unique<shard_replica>(*this, config, ledger)) {}
    duration now() const override { return in.time; }
    const caf::actor& self() override { return handle; }
    void send(const caf::actor& to, caf::message content) override {
      in.send(index, in.index_of(to), std::move(content));
    }
    void watch(const caf::actor& whom) override {
      const auto other = in.index_of(whom);
      if (in.cut.contains(std::minmax(index, other)))
        in.unnoticed.push_back({in.time + in.config.detection_time, other, index});
      else if (in.members[other]->alive)
        watches.insert(other);
      else
        in.queue[{other, index}].push_back({caf::message{}, true, true});
    }
    std::optional<std::size_t> replica_of(const caf::strong_actor_ptr& address,
                                          std::string_view) override {
      for (const auto& other : in.members)
        if (strong(other->handle) == address) return other->host;
      return std::nullopt;
    }
    void role_changed() override {}
    void reserved() override {
      for (auto& [peer, count] : std::exchange(owed, {})) in.lease(*this, peer, count);
    }
    void ledger_lost(std::uint64_t) override { ++lost_ledgers; }
    void merged(const sample_ledger::merge_result&) override {}
    void refused(std::string why) override { in.refusals.push_back(std::move(why)); }
  };

  explicit lab(unsigned replicas, std::uint64_t seed = 1, duration lease = 60s,
               std::uint64_t first = 0)
      : lease_time(lease), first_block(first), draws(stream(seed, "lab")) {
    config.replicas = replicas;
    config.detection_time = 2s;
    config.beat = 500ms;
    config.seek_time = 4s;
    config.reserve = 16;
    config.update_rows = 3;
    config.follow_time = 12s;
    for (unsigned i = 0; i < replicas; ++i) add();
  }
  ~lab() {
    queue.clear();
    for (auto& m : members) m->replica->clear();
  }

  std::size_t add() {
    auto address = world.spawn<collector<samples>>(world.add_host("replica"),
                                                   std::make_shared<collector<samples>::log>());
    const auto index = members.size();
    // A new process runs on a host whose process has ended.
    std::size_t host = 0;
    while (std::any_of(members.begin(), members.end(),
                       [host](const auto& m) { return m->alive && m->host == host; }))
      ++host;
    members.push_back(std::make_unique<member>(*this, index, host, std::move(address),
                                               first_block + index, config));
    members.back()->replica->start();
    return index;
  }
  std::size_t index_of(const caf::actor& who) const {
    for (std::size_t i = 0; i < members.size(); ++i)
      if (members[i]->handle == who) return i;
    FAIL("a message to a stranger");
    return 0;
  }
  void send(std::size_t from, std::size_t to, caf::message content) {
    if (content.match_elements<ledger_update>()) ++sent_updates;
    if (!cut.contains(std::minmax(from, to)))
      queue[{from, to}].push_back({std::move(content), false, false});
  }
  /// Delivers one message of a random pair.
  bool step() {
    std::vector<std::pair<std::size_t, std::size_t>> busy;
    for (const auto& [pair, waiting] : queue)
      if (!waiting.empty()) busy.push_back(pair);
    if (busy.empty()) return false;
    const auto pair = busy[draws.below(busy.size())];
    auto& waiting = queue[pair];
    auto at = waiting.begin();
    const auto large = [&](const auto& m) {
      return !m.gone && m.content.template match_elements<ledger_update>() &&
             m.content.template get_as<ledger_update>(0).rows.size() >= config.update_rows;
    };
    // Small messages may overtake large ones. Each class keeps its order.
    if (overtakes && large(*at) && draws.uniform() < 0.5)
      if (const auto small = std::find_if_not(waiting.begin(), waiting.end(), large);
          small != waiting.end() && !small->gone)
        at = small;
    auto what = std::move(*at);
    waiting.erase(at);
    auto& to = *members[pair.second];
    if (!to.alive) return true;
    auto& from = *members[pair.first];
    if (what.gone) {
      to.replica->lost(caf::actor_cast<caf::actor_addr>(from.handle), what.dead);
      return true;
    }
    const auto sender = caf::actor_cast<caf::strong_actor_ptr>(from.handle);
    const auto& m = what.content;
    if (m.match_elements<replica_hello>())
      to.replica->on(m.get_as<replica_hello>(0), sender);
    else if (m.match_elements<ledger_update>())
      to.replica->on(m.get_as<ledger_update>(0), sender);
    else if (m.match_elements<ledger_received>())
      to.replica->on(m.get_as<ledger_received>(0), sender);
    else if (m.match_elements<not_primary>())
      to.replica->on(m.get_as<not_primary>(0), sender);
    else
      FAIL("an unknown message");
    return true;
  }
  void settle() {
    for (int i = 0; step(); ++i) REQUIRE(i < 100'000);
  }
  /// Runs beats and delivers all messages of each beat. The DHT gives every replica the records of
  /// all live ones.
  void pass(duration how_long) {
    for (const auto until = time + how_long; time < until;) {
      time += config.beat;
      for (; !unnoticed.empty() && unnoticed.front().at <= time; unnoticed.pop_front())
        queue[{unnoticed.front().lost, unnoticed.front().by}].push_back(
            {caf::message{}, true, false});
      for (auto& m : members) {
        if (!m->alive || !m->replica->beat()) continue;
        std::vector<shared<record>> records;
        for (auto& other : members)
          if (other->alive) {
            record r;
            r.address = other->handle;
            r.value = shard_record{other->replica->record(), {}}.pack();
            records.push_back(std::move(r));
          }
        m->replica->found(records);
      }
      settle();
    }
  }
  /// Loses all messages from a random one on, but no notice of a lost replica.
  void lose_tail(std::deque<envelope>& waiting) {
    const auto from =
        waiting.begin() + static_cast<std::ptrdiff_t>(draws.below(waiting.size() + 1));
    waiting.erase(std::remove_if(from, waiting.end(), [](const envelope& m) { return !m.gone; }),
                  waiting.end());
  }
  /// The replica ends. Its messages are lost from a random one on.
  void kill(std::size_t who, bool certain) {
    members[who]->alive = false;
    for (std::size_t other = 0; other < members.size(); ++other) {
      auto& waiting = queue[{who, other}];
      lose_tail(waiting);
      if (members[other]->watches.erase(who) > 0)
        waiting.push_back({caf::message{}, true, certain});
    }
  }
  void separate(std::size_t a, std::size_t b) {
    cut.insert(std::minmax(a, b));
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
      auto& waiting = queue[{from, to}];
      lose_tail(waiting);
      if (members[to]->alive && members[to]->watches.erase(from) > 0)
        waiting.push_back({caf::message{}, true, false});
    }
  }
  void heal() { cut.clear(); }

  std::vector<std::size_t> primaries() const {
    std::vector<std::size_t> out;
    for (const auto& m : members)
      if (m->alive && m->replica->primary()) out.push_back(m->index);
    return out;
  }
  void lease(member& by, peer_id peer, std::uint32_t count) {
    by.replica->want(count);
    const auto fresh_from = by.ledger.next();
    const auto got = by.ledger.lease(peer, count, time);
    (void)by.ledger.report_uncertain(got);
    for (const auto& range : got) {
      for (auto i = range.first; i < range.end(); ++i)
        if (const auto had = holder.find(i); had != holder.end() && had->second.first != peer)
          taken.push_back({i, had->second.second, &by});
      held[peer].push_back(range);
      hold(by, peer, range);
      if (range.end() > fresh_from && range.first / index_block_size == by.ledger.index_block())
        for (auto i = std::max(range.first, fresh_from); i < range.end(); ++i)
          twice += issued.insert(i).second ? 0 : 1;
    }
    if (const auto n = index_count(got); n < count)
      by.owed.push_back({peer, static_cast<std::uint32_t>(count - n)});
    by.replica->replicate();
  }
  /// Counts indices that were leased to a second peer without a report. If one of the two primaries
  /// has died, no live replica may have heard of it.
  std::size_t stolen() const {
    return static_cast<std::size_t>(
        std::count_if(taken.begin(), taken.end(), [this](const auto& one) {
          return one.by->alive && one.from->alive &&
                 std::none_of(members.begin(), members.end(), [i = one.index](const auto& m) {
                   const auto& said = m->ledger.reports();
                   return m->ledger.doubtful().covers(i, i + 1) ||
                          std::any_of(said.begin(), said.end(), [i](const auto& r) {
                            return r.range.first <= i && i < r.range.end();
                          });
                 });
        }));
  }
  void hold(const member& by, peer_id peer, const sample_range& range) {
    for (auto i = range.first; i < range.end(); ++i) holder[i] = {peer, &by};
  }
  void release(const sample_range& range) {
    holder.erase(holder.lower_bound(range.first), holder.lower_bound(range.end()));
  }
  void renew(member& by, peer_id peer) {
    const auto ranges = checked_ranges(held[peer], 1000);
    if (!ranges) return;
    const auto said = by.ledger.renew(peer, *ranges, time);
    check_claim(by, said.unknown);
    for (const auto& range : said.claimed) hold(by, peer, range);
    interval_set keeps;
    for (const auto& range : *ranges) keeps.insert(range.first, range.end());
    for (const auto& range : said.lost) keeps.erase(range.first, range.end());
    held[peer].clear();
    for (const auto& p : keeps.pieces()) append_range(held[peer], p.first, p.end);
    by.replica->replicate();
  }
  /// Returns a part of what `peer` holds.
  void give_back(member& by, peer_id peer) {
    const auto ranges = checked_ranges(held[peer], 1000);
    if (!ranges || ranges->empty()) return;
    const std::vector some{(*ranges)[draws.below(ranges->size())]};
    const auto said = by.ledger.give_back(peer, some);
    check_claim(by, said.unknown);
    for (const auto& range : said.returned) release(range);
    interval_set keeps;
    for (const auto& range : *ranges) keeps.insert(range.first, range.end());
    keeps.erase(some[0].first, some[0].end());
    held[peer].clear();
    for (const auto& p : keeps.pieces()) append_range(held[peer], p.first, p.end);
    by.replica->replicate();
  }
  void expire(member& by) {
    for (const auto& ended : by.ledger.expire(time)) {
      (void)by.ledger.report_uncertain(ended.ranges);
      for (const auto& range : ended.ranges) release(range);
    }
    by.replica->replicate();
  }
  void check_claim(member& by, const std::vector<sample_range>& ranges) {
    const auto faulty = [&by, ranges] { return !by.ledger.may_be_leased_elsewhere(ranges); };
    if (faulty())
      by.replica->when_roles_confirmed([this, faulty] { reported += faulty() ? 1 : 0; });
  }
  /// Tells `by` of a round that used all that `peer` holds.
  void commit(member& by, peer_id peer) {
    auto ranges = checked_ranges(held[peer], 1000);
    held[peer].clear();
    if (!ranges || ranges->empty()) return;
    const auto use = [this, &by, peer, ranges = *ranges, round = ++rounds] {
      const group_id group{round, peer};
      const auto done = by.ledger.commit(peer, ranges, round, group, 1, 1);
      for (const auto& range : done.committed) release(range);
      unknown += index_count(done.unknown);
      by.replica->replicate();
      by.replica->when_replicated([this, all = done.committed, group] {
        for (const auto& range : all) confirmed.push_back({range, group});
      });
    };
    if (by.ledger.may_be_leased_elsewhere(by.ledger.unknown_to(peer, *ranges))) return use();
    ++unsure;
    by.replica->when_roles_confirmed(use);
  }
  /// The number of confirmed commits that a ledger lacks.
  std::uint64_t forgotten(const sample_ledger& in) const {
    std::uint64_t out = 0;
    for (const auto& [range, group] : confirmed)
      for (std::uint64_t i = range.first; i < range.end(); ++i) {
        bool there = false;
        for (const auto& row : in.snapshot())
          there = there ||
                  (row.first <= i && i < row.first + row.count &&
                   row.state.state == index_state::kind::committed && row.state.group == group);
        for (const auto& said : in.reports())
          there = there || (said.range.first <= i && i < said.range.end() && said.group == group);
        out += there ? 0 : 1;
      }
    return out;
  }

  mini_world world;
  replica_config config;
  static caf::strong_actor_ptr strong(const caf::actor& of) {
    return caf::actor_cast<caf::strong_actor_ptr>(of);
  }
  /// An actor on a host that is no replica.
  caf::actor stranger() {
    return world.spawn<collector<samples>>(world.add_host("stranger"),
                                           std::make_shared<collector<samples>::log>());
  }
  /// `from` sends a message to a member.
  template <class Message>
  void tell(std::size_t to, const Message& what, const caf::actor& from) {
    members[to]->replica->on(what, strong(from));
  }

  duration lease_time, time{};
  std::uint64_t first_block;
  rng draws;
  bool overtakes = false; // small messages may overtake large ones
  std::size_t sent_updates = 0;
  std::vector<std::unique_ptr<member>> members;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<envelope>> queue;
  std::set<std::pair<std::size_t, std::size_t>> cut;
  struct silence {
    duration at{};
    std::size_t lost = 0, by = 0;
  };
  std::deque<silence> unnoticed; // losses across a cut that are not noticed yet
  std::map<peer_id, std::vector<sample_range>> held;
  std::vector<std::pair<sample_range, group_id>> confirmed;
  // By index: the latest lease, its peer and its primary, until a primary takes it back.
  std::map<std::uint64_t, std::pair<peer_id, const member*>> holder;
  struct taking {
    std::uint64_t index = 0;
    const member *from = nullptr, *by = nullptr;
  };
  std::vector<taking> taken; // leased to a second peer
  std::set<std::uint64_t> issued;
  std::uint64_t twice = 0, rounds = 0, unknown = 0, reported = 0, unsure = 0;
  std::vector<std::string> refusals;
};

/// The content on which two replicas have to agree. The ends of leases differ.
std::string text_of(const sample_ledger& ledger) {
  std::string out;
  interval_map<index_state> states;
  for (auto row : ledger.snapshot()) {
    row.state.expires = {};
    states.assign(row.first, row.first + row.count, row.state);
  }
  for (const auto& p : states.pieces()) {
    const sample_ledger::row row{p.first, p.size(), p.value};
    out += fmt::format("{}+{} {} {} {}\n", row.first, row.count, static_cast<int>(row.state.state),
                       row.state.peer, row.state.group.hex());
  }
  for (const auto& r : ledger.reports())
    out += fmt::format("report {}+{} {}\n", r.range.first, r.range.count, r.group.hex());
  for (const auto& p : ledger.uncertain().pieces())
    out += fmt::format("uncertain {}+{}\n", p.first, p.size());
  for (const auto& p : ledger.doubtful().pieces())
    out += fmt::format("doubtful {}+{}\n", p.first, p.size());
  return out;
}

} // namespace

TEST_CASE("the first replica serves at once, and the others find it and copy its ledger") {
  lab t(3);
  CHECK(t.primaries() == std::vector<std::size_t>{0});
  t.lease(*t.members[0], 7, 10);
  // There is no other replica yet.
  CHECK(t.held[7] == std::vector<sample_range>{{0, 10}});
  t.pass(2s);
  CHECK(t.members[0]->replica->backups() == 2);
  for (auto& m : t.members) CHECK(text_of(m->ledger) == text_of(t.members[0]->ledger));
  t.commit(*t.members[0], 7);
  // Both backups have to acknowledge the commit.
  CHECK(t.confirmed.empty());
  t.settle();
  CHECK(t.confirmed.size() == 1);
  for (auto& m : t.members) CHECK(text_of(m->ledger) == text_of(t.members[0]->ledger));
}

TEST_CASE("fresh indices are issued only when the backups know of the reservation") {
  lab t(2);
  t.pass(2s);
  t.lease(*t.members[0], 7, 10);
  CHECK(t.held[7].empty());
  t.settle();
  CHECK(t.held[7] == std::vector<sample_range>{{0, 10}});
  // From the reservation.
  t.lease(*t.members[0], 8, 4);
  CHECK(t.held[8] == std::vector<sample_range>{{10, 4}});
}

TEST_CASE("a new primary issues fresh indices of its own, and peers claim leases that were not "
          "replicated") {
  lab t(2);
  t.pass(2s);
  t.lease(*t.members[0], 7, 10);
  t.settle();
  // This lease is not replicated.
  t.lease(*t.members[0], 8, 4);
  t.queue.clear();
  t.kill(0, true);
  t.settle();
  REQUIRE(t.primaries() == std::vector<std::size_t>{1});
  auto& next = t.members[1]->ledger;
  const auto claim = next.renew(8, std::vector<sample_range>{{10, 4}}, t.time);
  CHECK(claim.claimed == std::vector<sample_range>{{10, 4}});
  CHECK(claim.unknown.empty());
  CHECK(next.leased_by(7) == 10);
  t.lease(*t.members[1], 9, 3);
  CHECK(t.held[9] == std::vector<sample_range>{{index_block_size, 3}});
  // No peer claims the rest of the reservation. It is issued again, and no peer can have used it.
  t.time += 61s;
  (void)next.expire(t.time);
  CHECK(next.lease(9, 0, t.time).empty());
  t.members[1]->replica->replicate();
  CHECK(next.lease(9, 1, t.time) == std::vector<sample_range>{{0, 1}});
  CHECK(next.report_uncertain(std::vector<sample_range>{{0, 1}}).empty());
}

TEST_CASE("after silence the former primary may be alive, and indices that are issued again are "
          "doubtful") {
  lab t(2);
  t.pass(2s);
  t.lease(*t.members[0], 7, 10);
  t.settle();
  t.separate(0, 1);
  t.settle();
  CHECK(t.primaries() == std::vector<std::size_t>{0, 1});
  for (auto& m : t.members) {
    // A round with these samples may still end at the other primary.
    (void)m->ledger.renew(7, std::vector<sample_range>{{0, 4}}, t.time);
    (void)m->ledger.expire(t.time + 61s);
    CHECK(m->ledger.report_uncertain(std::vector<sample_range>{{0, 10}}) ==
          std::vector<sample_range>{{0, 10}});
  }
}

TEST_CASE("two primaries that meet become one, which has the ledgers of both") {
  lab t(2);
  t.pass(2s);
  t.lease(*t.members[0], 7, 10);
  t.lease(*t.members[0], 8, 10);
  t.settle();
  t.separate(0, 1);
  t.settle();
  auto& a = *t.members[0];
  auto& b = *t.members[1];
  t.commit(b, 7); // peer 7 is on the other side
  t.lease(b, 7, 5);
  t.held[8] = {{10, 10}, {0, 2}}; // two of them were leased to peer 8 at this primary
  (void)a.ledger.give_back(7, std::vector<sample_range>{{0, 2}});
  a.ledger.release({});
  t.commit(a, 8); // believed: b may have leased them to peer 8
  CHECK(t.confirmed.size() == 3);
  t.heal();
  t.pass(4s);
  CHECK(t.primaries() == std::vector<std::size_t>{0});
  CHECK(b.replica->role() == replica_role::backup);
  CHECK(text_of(a.ledger) == text_of(b.ledger));
  CHECK(a.ledger.count(index_state::kind::committed) == 20);
  CHECK(a.ledger.leased_by(7) == 5);
  CHECK(t.forgotten(a.ledger) == 0);
  t.lease(b, 9, 0);
  CHECK(t.refusals.empty());
}

TEST_CASE("the first primary issues the rest of its reservation once, whatever the other primary "
          "did with it") {
  lab t(2);
  t.pass(2s);
  t.lease(*t.members[0], 7, 10);
  t.settle();
  t.separate(0, 1);
  t.settle();
  auto& a = *t.members[0];
  auto& b = *t.members[1];
  CHECK(a.ledger.next() == 10);
  // Reserved and not replicated.
  REQUIRE(b.ledger.leased_by(0) > 0);
  t.heal();
  t.pass(4s);
  REQUIRE(t.primaries() == std::vector<std::size_t>{0});
  CHECK(a.ledger.leased_by(0) == 0);
  // At once, without waiting for a lease time.
  CHECK(a.ledger.count(index_state::kind::returned) == t.config.reserve);
  t.lease(a, 8, 30);
  t.settle();
  t.lease(a, 9, 30);
  t.settle();
  interval_set all;
  for (const auto peer : {8, 9})
    for (const auto& range : t.held[peer]) all.insert(range.first, range.end());
  CHECK(all.piece_count() == 1);
  CHECK(all.covers(10, 70));
  CHECK(index_count(t.held[8]) + index_count(t.held[9]) == 60);
  CHECK(t.twice == 0);
}

TEST_CASE("changes of either primary are known to both after they meet") {
  lab t(2);
  t.pass(2s);
  t.lease(*t.members[0], 7, 10);
  t.settle();
  t.separate(0, 1);
  t.settle();
  auto& a = *t.members[0];
  auto& b = *t.members[1];
  (void)b.ledger.give_back(7, std::vector<sample_range>{{0, 4}});
  b.replica->replicate();
  const auto again = b.ledger.lease(8, 4, t.time);
  REQUIRE(again == std::vector<sample_range>{{0, 4}});
  // The first primary may have a commit of peer 7 for these indices, although peer 7 returned them
  // here.
  CHECK(b.ledger.report_uncertain(again) == again);
  t.heal();
  t.pass(4s);
  REQUIRE(t.primaries() == std::vector<std::size_t>{0});
  CHECK(a.ledger.leased_by(8) == 4);
  CHECK(a.ledger.leased_by(7) == 6);
}

TEST_CASE("a primary with an unnoticed cut asks its backups before it refuses a commit of foreign "
          "leases") {
  lab t(2);
  t.pass(2s);
  t.lease(*t.members[0], 7, 10);
  t.settle();
  t.separate(0, 1);
  const auto unnoticed = std::exchange(t.queue[{1, 0}], {});
  t.settle();
  REQUIRE(t.primaries() == std::vector<std::size_t>{0, 1});
  auto& a = *t.members[0];
  auto& b = *t.members[1];
  t.time += 61s;
  t.expire(b);
  t.lease(b, 8, 10);
  REQUIRE(t.held[8] == std::vector<sample_range>{{0, 10}});
  t.commit(a, 8);
  CHECK(t.unsure == 1);
  CHECK(a.ledger.count(index_state::kind::committed) == 0);
  CHECK(t.confirmed.empty());
  t.queue[{1, 0}] = unnoticed;
  t.settle();
  CHECK(t.unknown == 0);
  CHECK(a.ledger.count(index_state::kind::committed) == 10);
  CHECK(t.confirmed.size() == 1);
}

TEST_CASE("a backup of the former primary may serve behind a cut until it follows, and so may a "
          "primary that yielded") {
  for (const bool yielded : {false, true}) {
    CAPTURE(yielded);
    lab t(yielded ? 2 : 3);
    t.pass(2s);
    t.lease(*t.members[0], 7, 10);
    t.settle();
    auto& ours = *t.members[yielded ? 0 : 1];
    auto& other = *t.members[yielded ? 1 : 2];
    const auto lost = [](lab::member& by, const lab::member& whom) {
      by.replica->lost(caf::actor_cast<caf::actor_addr>(whom.handle), false);
    };
    if (yielded) {
      t.separate(0, 1);
      t.pass(3s);
      t.heal();
      REQUIRE((ours.replica->primary() && other.replica->primary()));
      for (int i = 0;
           i < 1000 && (ours.ledger.diverged() || other.replica->role() != replica_role::yielding);
           ++i) {
        t.time += t.config.beat;
        for (auto& m : t.members) (void)m->replica->beat();
        t.tell(ours.index,
               replica_hello{
                   {1, other.handle}, static_cast<std::uint8_t>(other.replica->role()), 0, 0, 0},
               other.handle);
        while ((ours.ledger.diverged() || other.replica->role() != replica_role::yielding) &&
               t.step()) {
        }
      }
      REQUIRE_FALSE(ours.ledger.diverged());
      REQUIRE(other.replica->role() == replica_role::yielding);
      // The other primary does not hear that its ledger has arrived.
      lost(other, ours);
    } else {
      t.cut.insert({1, 2});
      t.kill(0, true);
      t.settle();
      REQUIRE(ours.replica->primary());
      lost(other, ours);
    }
    REQUIRE(other.replica->primary());
    t.queue.clear();
    t.time += 61s;
    t.expire(other);
    t.lease(other, 9, 10);
    REQUIRE(t.held[9] == std::vector<sample_range>{{0, 10}});
    t.commit(ours, 9);
    CHECK(t.unsure == 1);
    CHECK(t.unknown == 0);
    CHECK(ours.ledger.count(index_state::kind::committed) == 0);
    if (yielded) other.replica->beat();
    lost(ours, other);
    CHECK(t.unknown == 0);
    CHECK(ours.ledger.count(index_state::kind::committed) == 10);
  }
}

TEST_CASE("a backup that died after the primary may have served in between") {
  lab t(3);
  t.pass(2s);
  t.lease(*t.members[0], 7, 10);
  t.settle();
  const auto dies = [&](std::size_t who, std::size_t heard_by) {
    t.members[who]->alive = false;
    t.members[heard_by]->replica->lost(caf::actor_cast<caf::actor_addr>(t.members[who]->handle),
                                       true);
  };
  dies(0, 1);
  auto& second = *t.members[1];
  REQUIRE(second.replica->primary());
  t.give_back(second, 7);
  t.lease(second, 9, 10);
  REQUIRE(t.held[9] == std::vector<sample_range>{{0, 10}});
  dies(1, 2);
  dies(0, 2);
  auto& third = *t.members[2];
  REQUIRE(third.replica->primary());
  t.commit(third, 9);
  CHECK(t.unknown == 0);
  CHECK(third.ledger.count(index_state::kind::committed) == 10);
}

TEST_CASE("while a ledger is diverged, unknown primaries and their use of returned indices are "
          "possible, too") {
  sample_ledger a(60s, 1), b(60s, 2);
  for (auto* l : {&a, &b}) {
    l->know_index_blocks(3);
    l->record_changes(false);
  }
  const std::vector<sample_range> all{{0, 10}}, late{{7 * index_block_size + 3, 5}};
  CHECK(a.commit(8, late, 1, {1, 1}, 1, 1).unknown == late);
  index_state leased;
  leased.state = index_state::kind::leased;
  leased.peer = 7;
  leased.expires = 60s;
  a.apply({0, 10, leased});
  // Peer 7 has returned them. The first primary may have leased them again.
  b.apply({0, 10, {}});
  for (auto* l : {&a, &b}) {
    l->diverge_from(l == &a ? 2 : 1);
    l->take_over(0, 10, true, 0s);
  }
  CHECK(a.commit(8, late, 1, {1, 1}, 1, 1).committed == late);
  CHECK(a.merge(b).doubtful == all);
  CHECK_FALSE(a.diverged());
  CHECK(a.commit(9, all, 2, {2, 2}, 1, 1).unknown.empty());
  CHECK(a.count(index_state::kind::committed) == 15);
}

TEST_CASE("a commit of samples that its peer never got is refused once the backups have confirmed "
          "their role") {
  lab t(2);
  t.pass(2s);
  auto& primary = *t.members[0];
  t.lease(primary, 7, 10);
  t.settle();
  t.held[9] = t.held[7];
  t.commit(primary, 9);
  CHECK(t.unsure == 1);
  CHECK(t.unknown == 0);
  t.settle();
  CHECK(t.unknown == 10);
  CHECK(primary.ledger.count(index_state::kind::committed) == 0);
  CHECK(primary.ledger.leased_by(7) == 10);
}

TEST_CASE("a replica that starts without a ledger diverges from one that it cannot reach, and the "
          "reverse") {
  lab t(1);
  t.config.replicas = 2;
  t.members[0]->replica->clear();
  t.members.clear();
  t.add();
  t.cut.insert({0, 1}); // both notice the cut when they look for each other
  t.add();
  t.pass(10s);
  REQUIRE(t.primaries() == std::vector<std::size_t>{0, 1});
  for (auto& m : t.members) CHECK(m->ledger.diverged());
  t.heal();
  t.unnoticed.clear();
  t.pass(10s);
  CHECK(t.primaries() == std::vector<std::size_t>{0});
  for (auto& m : t.members) CHECK_FALSE(m->ledger.diverged());
}

TEST_CASE("a peer with leases of the other primary is believed and not reported as faulty") {
  sample_ledger a(60s, 0), b(60s, 1);
  for (auto* l : {&a, &b}) {
    l->know_index_blocks(2);
    l->record_changes(false);
  }
  a.reserve(100);
  (void)a.lease(7, 10, 0s);
  for (const auto& row : a.snapshot()) b.apply({row.first, row.first + row.count, row.state});
  a.diverge_from(1);
  b.take_over(0, 100, false, 0s);
  (void)b.expire(61s);
  // The first primary has not issued 10 to 19.
  const auto at_b = b.lease(8, 20, 61s);
  REQUIRE(at_b == std::vector<sample_range>{{0, 20}});
  REQUIRE(b.report_uncertain(at_b) == at_b);
  const auto at_a = a.renew(8, std::vector<sample_range>{{12, 8}}, 62s);
  CHECK(at_a.claimed == std::vector<sample_range>{{12, 8}});
  CHECK(a.lease(9, 4, 62s) == std::vector<sample_range>{{10, 2}, {20, 2}});
  const auto used = a.commit(8, std::vector<sample_range>{{0, 5}}, 3, {1, 1}, 1, 1);
  CHECK(used.unknown.empty());
  // Peer 7 may have used them.
  CHECK(used.repeated == std::vector<sample_range>{{0, 5}});
  const auto merged = a.merge(b);
  CHECK(merged.doubtful.empty());
  // 10 and 11 were leased to peer 9, too, which b had reported.
  CHECK(a.leased_by(8) == 15 - 2);
  CHECK_FALSE(a.diverged());
}

TEST_CASE("index blocks that are numbered by time may be far apart, and their rows and reports "
          "stay few") {
  const std::uint64_t early = 1'800'000'000, late = early + 240'000;
  sample_ledger a(60s, early), b(60s, late);
  for (auto* ledger : {&a, &b}) {
    ledger->record_changes(true);
    ledger->mark_all_before_doubtful();
  }
  CHECK(a.lease(7, 5, 0s) == std::vector<sample_range>{{early * index_block_size, 5}});
  CHECK(b.lease(9, 5, 0s) == std::vector<sample_range>{{late * index_block_size, 5}});
  a.diverge_from(late);
  b.diverge_from(early);
  CHECK((a.diverged() && b.diverged()));
  CHECK(a.merge(b).doubtful.empty());
  CHECK_FALSE(a.diverged());
  CHECK(a.leased_by(9) == 5);
  CHECK(rows_of(a.take_changes(), 0s).size() < 20);
  CHECK(rows_of(a, 0s).size() < 20);
}

TEST_CASE("a replica without any live predecessor reports that the ledger is lost") {
  lab t(2);
  t.pass(2s);
  t.lease(*t.members[0], 7, 10);
  t.settle();
  t.kill(1, true);
  t.settle();
  t.kill(0, true);
  const auto third = t.add();
  t.pass(3s);
  CHECK(t.primaries().empty());
  t.pass(3s);
  CHECK(t.primaries() == std::vector<std::size_t>{third});
  CHECK(t.members[third]->lost_ledgers == 1);
  // A peer that used samples may still say so.
  const auto done =
      t.members[third]->ledger.commit(7, std::vector<sample_range>{{0, 10}}, 3, {1, 1}, 1, 1);
  CHECK(done.committed == std::vector<sample_range>{{0, 10}});
}

TEST_CASE(
    "small pieces of a ledger may overtake large ones, and the ledger arrives complete and once") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    lab t(1, seed);
    t.overtakes = true;
    t.config.replicas = 2;
    t.members[0]->replica->clear();
    t.members.clear();
    t.add();
    t.pass(2s);
    // More rows than fit in a message.
    for (peer_id peer = 7; peer < 19; ++peer) {
      t.lease(*t.members[0], peer, 3);
      t.settle();
    }
    t.add();
    t.pass(5s);
    const auto updates = t.sent_updates;
    t.pass(10s);
    CHECK(t.sent_updates == updates);
    CHECK(t.members[1]->replica->role() == replica_role::backup);
    CHECK(text_of(t.members[1]->ledger) == text_of(t.members[0]->ledger));
    // There are two primaries, and one hands its whole ledger over.
    t.separate(0, 1);
    t.pass(5s);
    CHECK(t.primaries().size() == 2);
    t.heal();
    t.pass(20s);
    CHECK(t.primaries().size() == 1);
    CHECK(text_of(t.members[1]->ledger) == text_of(t.members[0]->ledger));
  }
}

TEST_CASE("a backup that missed a message gets the whole ledger") {
  lab t(2);
  t.pass(2s);
  for (int i = 0; i < 5; ++i) {
    t.lease(*t.members[0], 7, 3);
    t.settle();
    t.commit(*t.members[0], 7);
    // These messages are lost.
    if (i == 2) t.queue.clear();
    t.settle();
  }
  t.pass(6s);
  CHECK(t.confirmed.size() == 5);
  CHECK(text_of(t.members[0]->ledger) == text_of(t.members[1]->ledger));
}

TEST_CASE("a replica that takes over from a diverged primary has diverged from the same replicas") {
  lab t(3);
  t.pass(2s);
  t.lease(*t.members[0], 7, 10);
  t.settle();
  t.separate(0, 1);
  t.separate(1, 2);
  t.settle();
  t.lease(*t.members[1], 9, 4); // fresh indices of its own block
  t.settle();
  auto& third = *t.members[2];
  CHECK(third.ledger.uncertain().covers(0, 10));
  CHECK(third.ledger.uncertain().covers(index_block_size, 2 * index_block_size));
  t.kill(0, true);
  t.settle();
  REQUIRE(third.replica->primary());
  // Peer 9 comes from the other side, where peer 7 has contributed.
  CHECK(
      third.ledger.commit(9, std::vector<sample_range>{{index_block_size + 2, 2}}, 1, {1, 1}, 1, 1)
          .committed.size() == 1);
  (void)third.ledger.expire(t.time + 61s);
  CHECK(third.ledger.report_uncertain(std::vector<sample_range>{{0, 10}}) ==
        std::vector<sample_range>{{0, 10}});
  t.heal();
  t.pass(4s);
  CHECK(t.primaries() == std::vector<std::size_t>{1});
  // The third replica had all that the dead one knew.
  CHECK_FALSE(t.members[1]->ledger.diverged());
  CHECK(text_of(t.members[1]->ledger) == text_of(third.ledger));
  CHECK(t.refusals.empty());
}

TEST_CASE("a claim that the ledger cannot refute does not make a peer faulty") {
  lab t(1);
  auto& alone = t.members[0]->ledger;
  (void)alone.lease(7, 10, 0s);
  CHECK_FALSE(alone.may_be_leased_elsewhere(std::vector<sample_range>{{0, 10}}));
  CHECK(alone.commit(8, std::vector<sample_range>{{0, 10}}, 1, {1, 1}, 1, 1).unknown ==
        std::vector<sample_range>{{0, 10}});
  sample_ledger lost(60s, 1);
  lost.mark_all_before_doubtful();
  // Several peers may claim an index whose history is lost.
  CHECK(lost.renew(7, std::vector<sample_range>{{0, 10}}, 0s).claimed ==
        std::vector<sample_range>{{0, 10}});
  CHECK(
      lost.may_be_leased_elsewhere(lost.renew(8, std::vector<sample_range>{{0, 10}}, 0s).unknown));
  const auto done = lost.commit(8, std::vector<sample_range>{{4, 2}}, 1, {1, 1}, 1, 1);
  CHECK(done.repeated == std::vector<sample_range>{{4, 2}});
  CHECK(done.unknown.empty());
  REQUIRE(done.revoked.size() == 1);
  CHECK(done.revoked[0].peer == 7);
  // The peer repeats its report.
  CHECK(lost.commit(8, std::vector<sample_range>{{4, 2}}, 1, {1, 1}, 1, 1).already ==
        std::vector<sample_range>{{4, 2}});
}

TEST_CASE("under random faults no confirmed commit is lost while a replica lives that had it, and "
          "no index is leased twice unreported") {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const auto replicas = 2 + static_cast<unsigned>(seed % 2);
    lab t(replicas, seed, seed % 4 < 2 ? 6s : 60s);
    t.overtakes = seed % 3 != 0;
    t.pass(2s);
    auto& draws = t.draws;
    for (int i = 0; i < 150; ++i) {
      const auto what = draws.below(100);
      const auto serving = t.primaries();
      const auto living = [&] {
        std::vector<std::size_t> out;
        for (auto& m : t.members)
          if (m->alive) out.push_back(m->index);
        return out;
      }();
      const bool whole = t.cut.empty() && living.size() == replicas && serving.size() == 1 &&
                         t.members[serving[0]]->replica->backups() + 1 == replicas &&
                         std::all_of(living.begin(), living.end(), [&](auto m) {
                           return t.members[m]->replica->primary() ||
                                  t.members[m]->replica->role() == replica_role::backup;
                         });
      if (what < 30 && !serving.empty()) {
        t.lease(*t.members[serving[draws.below(serving.size())]], 1 + draws.below(4),
                1 + static_cast<std::uint32_t>(draws.below(20)));
      } else if (what < 55 && !serving.empty()) {
        t.commit(*t.members[serving[draws.below(serving.size())]], 1 + draws.below(4));
      } else if (what < 60 && !serving.empty()) {
        t.renew(*t.members[serving[draws.below(serving.size())]], 1 + draws.below(4));
      } else if (what < 64 && !serving.empty()) {
        t.give_back(*t.members[serving[draws.below(serving.size())]], 1 + draws.below(4));
      } else if (what < 66 && !serving.empty()) {
        t.expire(*t.members[serving[draws.below(serving.size())]]);
      } else if (what < 85) {
        for (auto n = draws.below(12); n > 0; --n) t.step();
      } else if (what < 88 && whole) {
        t.kill(living[draws.below(living.size())], true);
      } else if (what < 91 && living.size() < replicas) {
        t.add();
      } else if (what < 93 && whole) {
        t.separate(living[0], living[1]);
      } else if (what < 95) {
        t.heal();
        t.pass(5s);
      } else {
        t.pass(t.config.beat * static_cast<std::int64_t>(1 + draws.below(6)));
      }
    }
    t.heal();
    t.pass(20s);
    const auto serving = t.primaries();
    INFO("seed " << seed);
    REQUIRE(serving.size() == 1);
    auto& primary = *t.members[serving[0]];
    CHECK(t.forgotten(primary.ledger) == 0);
    CHECK(t.twice == 0);
    CHECK(t.stolen() == 0);
    CHECK(t.unknown == 0);
    CHECK(t.reported == 0);
    CHECK(t.refusals.empty());
    for (auto& m : t.members)
      if (m->alive) CHECK(text_of(m->ledger) == text_of(primary.ledger));
  }
}

TEST_CASE("however often replicas die and are cut off, one primary is left, and no index is leased "
          "twice unreported") {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const auto replicas = 2 + static_cast<unsigned>(seed % 3);
    lab t(replicas, seed, seed % 4 < 2 ? 6s : 60s);
    INFO("seed " << seed);
    t.overtakes = seed % 5 != 0;
    t.pass(2s);
    auto& draws = t.draws;
    const auto living = [&] {
      std::vector<std::size_t> out;
      for (auto& m : t.members)
        if (m->alive) out.push_back(m->index);
      return out;
    };
    const auto serving = [&]() -> lab::member* {
      const auto all = t.primaries();
      return all.empty() ? nullptr : t.members[all[draws.below(all.size())]].get();
    };
    for (int i = 0; i < 150; ++i) {
      const auto what = draws.below(100);
      const auto peer = 1 + draws.below(4);
      auto* const by = what < 60 ? serving() : nullptr;
      if (what < 60 && by == nullptr) continue;
      if (what < 25)
        t.lease(*by, peer, 1 + static_cast<std::uint32_t>(draws.below(20)));
      else if (what < 40)
        t.commit(*by, peer);
      else if (what < 50)
        t.renew(*by, peer);
      else if (what < 55)
        t.give_back(*by, peer);
      else if (what < 60)
        t.expire(*by);
      else if (what < 80)
        for (auto n = draws.below(12); n > 0; --n) t.step();
      else if (const auto all = living(); what < 84 && all.size() > 1)
        t.kill(all[draws.below(all.size())], draws.below(2) == 0);
      else if (what < 87 && all.size() < replicas)
        t.add();
      else if (what < 90 && all.size() > 1) {
        const auto one = draws.below(all.size());
        t.separate(all[one], all[(one + 1 + draws.below(all.size() - 1)) % all.size()]);
      } else if (what < 92)
        t.heal();
      else
        t.pass(t.config.beat * static_cast<std::int64_t>(1 + draws.below(6)));
    }
    t.heal();
    t.pass(40s);
    CHECK(t.unknown == 0);
    CHECK(t.reported == 0);
    CHECK(t.twice == 0);
    CHECK(t.stolen() == 0);
    CHECK(t.refusals.empty());
    const auto in_the_end = t.primaries();
    CHECK(in_the_end.size() == 1);
    if (in_the_end.size() != 1) continue;
    for (const auto m : living())
      CHECK(text_of(t.members[m]->ledger) == text_of(t.members[in_the_end[0]]->ledger));
  }
}

TEST_CASE("this test's check finds a backup that forgets commits") {
  lab t(2);
  t.members[1]->replica->clear();
  t.config.conduct = std::make_shared<forgotten_commit>();
  t.members.pop_back();
  t.add();
  t.pass(2s);
  t.lease(*t.members[0], 7, 10);
  t.settle();
  t.commit(*t.members[0], 7);
  t.settle();
  t.kill(0, true);
  t.settle();
  REQUIRE(t.primaries() == std::vector<std::size_t>{1});
  CHECK(t.forgotten(t.members[1]->ledger) == 10);
}

TEST_CASE("messages that no replica sends change nothing") {
  lab t(2);
  t.pass(2s);
  t.lease(*t.members[0], 7, 10);
  t.settle();
  const auto before = text_of(t.members[1]->ledger);
  const auto& primary = t.members[0]->handle;
  const auto tell = [&](const auto& what) { t.tell(1, what, primary); };
  const replica_info other{0, primary};
  tell(replica_hello{});
  tell(replica_hello{{1, primary}, 0, 0, 0, 0});
  tell(replica_hello{other, 9, 0, 0, 0});
  tell(ledger_update{});
  CHECK(t.refusals.size() == 4);
  ledger_update bad;
  bad.from = other;
  bad.stream = 77;
  bad.sequence = 1;
  ledger_row row;
  row.first = 5;
  bad.rows = {row};
  sample_ledger scratch(60s);
  CHECK_FALSE(apply_rows(bad.rows, scratch, {}).ok());
  for (auto [count, what, included, total] :
       {std::tuple{~0ull, 0, 0u, 0u}, std::tuple{1ull, 10, 0u, 0u}, std::tuple{1ull, 2, 0u, 0u},
        std::tuple{1ull, 5, 3u, 2u}}) {
    row.count = count;
    row.what = static_cast<std::uint8_t>(what);
    row.parts_included = included;
    row.parts_total = total;
    CHECK_FALSE(apply_rows(std::span(&row, 1), scratch, {}).ok());
  }
  CHECK(scratch.snapshot().empty());
  // A range of 2^64 samples is one report, not a list that fills the memory. The same holds for
  // index blocks.
  for (const auto what :
       {ledger_row_kind::repeated, ledger_row_kind::disputed, ledger_row_kind::uncertain}) {
    row.first = 0;
    row.count = ~0ull;
    row.what = static_cast<std::uint8_t>(what);
    row.parts_included = row.parts_total = 1;
    CHECK_FALSE(apply_rows(std::span(&row, 1), scratch, {}).ok());
  }
  CHECK(scratch.reports().empty());
  CHECK(scratch.uncertain().empty());
  // A lease of centuries ends.
  row.count = 3;
  row.what = static_cast<std::uint8_t>(ledger_row_kind::leased);
  row.peer = 7;
  row.remaining_ns = std::numeric_limits<std::int64_t>::max();
  REQUIRE(apply_rows(std::span(&row, 1), scratch, 1h).ok());
  CHECK(scratch.next_expiry() > 1h);
  // This index block is beyond 64 bits.
  const auto refused = t.refusals.size();
  tell(replica_hello{{~0ull, primary}, 0, 0, 0, 0});
  bad.rows.clear();
  bad.from.index_block = ~0ull;
  tell(bad);
  bad.from.index_block = 0;
  bad.known_index_blocks = ~0ull;
  tell(bad);
  bad.known_index_blocks = 0;
  bad.what = 4;
  tell(bad);
  bad.what = 0;
  bad.backups.resize(1000);
  tell(bad);
  bad.backups.clear();
  bad.rows.resize(100'000);
  tell(bad);
  CHECK(t.refusals.size() == refused + 6);
  CHECK(text_of(t.members[1]->ledger) == before);
}

TEST_CASE("a shard's record says whether it has replicas, and carries its certificate") {
  const auto back = [](const shard_record& what) { return shard_record::unpack(what.pack()); };
  REQUIRE(back({}).has_value());
  CHECK_FALSE(back({})->replica.has_value());
  const auto alone = back({std::nullopt, "certificate"});
  REQUIRE(alone.has_value());
  CHECK_FALSE(alone->replica.has_value());
  CHECK(alone->certificate == "certificate");
  const auto one = back({replica_record{7, replica_role::backup}, "certificate"});
  REQUIRE((one && one->replica));
  CHECK(one->replica->index_block == 7);
  CHECK(one->replica->role == replica_role::backup);
  CHECK(one->certificate == "certificate");
  CHECK_FALSE(back({replica_record{~0ull, replica_role::primary}, {}}).has_value());
  CHECK_FALSE(shard_record::unpack(payload{std::vector<std::byte>(17, std::byte{7})}).has_value());
  CHECK_FALSE(shard_record::unpack(payload{std::vector<std::byte>(9, std::byte{1})}).has_value());
}

TEST_CASE("data shard: a stranger's hello does not make the primary yield") {
  lab t(2, 1, 60s, 10);
  t.pass(10s);
  REQUIRE(t.primaries() == std::vector<std::size_t>{0});
  t.lease(*t.members[0], 7, 10);
  t.settle();
  const auto before = text_of(t.members[0]->ledger);
  const auto sent = t.sent_updates;
  const auto stranger = t.stranger();
  const auto says = static_cast<std::uint8_t>(replica_role::primary);
  t.tell(0, replica_hello{{1, stranger}, says, 0, 0, 0}, stranger);
  // A stranger names a replica, and a replica names a stranger.
  t.tell(0, replica_hello{{1, t.members[1]->handle}, says, 0, 0, 0}, stranger);
  t.tell(0, replica_hello{{1, stranger}, says, 0, 0, 0}, t.members[1]->handle);
  t.tell(0, replica_hello{{1, t.members[1]->handle}, says, 0, 0, 0}, {});
  CHECK(t.refusals.size() == 4);
  CHECK(t.members[0]->replica->role() == replica_role::primary);
  CHECK(t.sent_updates == sent);
  CHECK(text_of(t.members[0]->ledger) == before);
}

TEST_CASE("data shard: a stranger gets no ledger, hands none over and leads no backup") {
  lab t(2);
  t.pass(2s);
  t.lease(*t.members[0], 7, 10);
  t.settle();
  const auto stranger = t.stranger();
  const auto sent = t.sent_updates;
  const auto as = [](replica_role what) { return static_cast<std::uint8_t>(what); };
  t.tell(0, replica_hello{{9, stranger}, as(replica_role::seeking), 0, 0, 0}, stranger);
  t.tell(0, replica_hello{{9, stranger}, as(replica_role::backup), 0, 0, 0}, stranger);
  CHECK(t.members[0]->replica->backups() == 1);
  ledger_update handover;
  handover.from = {9, stranger};
  handover.stream = handover.sequence = handover.reserved = 1;
  handover.what = 3;
  t.tell(0, handover, stranger);
  CHECK(t.sent_updates == sent);
  t.tell(0, ledger_received{1, 1}, stranger);
  t.tell(1, not_primary{stranger}, stranger);
  record of_stranger;
  of_stranger.address = stranger;
  of_stranger.value = shard_record{replica_record{3, replica_role::primary}, {}}.pack();
  t.members[0]->replica->found({of_stranger});
  CHECK(t.members[0]->ledger.known_index_blocks() == 2);
  CHECK(t.refusals.size() == 5);
  // A claim waits for nobody that a stranger made up.
  t.held[9] = {{500, 4}};
  t.commit(*t.members[0], 9);
  REQUIRE(t.unsure == 1);
  t.settle();
  CHECK(t.unknown == 4);
  CHECK(t.members[0]->replica->primary());
}

TEST_CASE("data shard: a replica that hands its ledger over and never follows delays commits only "
          "for a while") {
  lab t(3);
  t.pass(2s);
  t.lease(*t.members[0], 7, 10);
  t.settle();
  // The third replica receives nothing any more, but its link is up.
  t.cut.insert({0, 2});
  t.cut.insert({1, 2});
  t.commit(*t.members[0], 7);
  t.pass(8s);
  REQUIRE(t.members[0]->replica->backups() == 1);
  CHECK(t.confirmed.size() == 1);
  ledger_update handover;
  handover.from = {2, t.members[2]->handle};
  handover.stream = handover.sequence = handover.reserved = 1;
  handover.what = 3;
  t.tell(0, handover, t.members[2]->handle);
  t.lease(*t.members[0], 7, 4);
  REQUIRE(t.held[7] == std::vector<sample_range>{{10, 4}});
  t.held[9] = t.held[7];
  t.commit(*t.members[0], 9);
  REQUIRE(t.unsure == 1);
  t.lease(*t.members[0], 8, 30);
  t.pass(6s);
  CHECK(index_count(t.held[8]) < 30);
  t.pass(8s);
  CHECK(index_count(t.held[8]) == 30);
  // The replica may have leased the claimed samples.
  CHECK(t.members[0]->ledger.diverged());
  CHECK(t.unknown == 0);
}

TEST_CASE("data shard: a backup that never acknowledges delays the primary ever less often") {
  lab t(2);
  t.pass(2s);
  auto& primary = *t.members[0]->replica;
  const auto silent = t.members[1]->handle;
  t.members[1]->alive = false; // and the primary does not notice
  std::size_t delayed = 0, beats = 400;
  for (std::size_t i = 0; i < beats; ++i) {
    t.time += t.config.beat;
    t.tell(0, replica_hello{{1, silent}, static_cast<std::uint8_t>(replica_role::backup), 0, 0, 0},
           silent);
    (void)primary.beat();
    t.settle();
    delayed += primary.backups() > 0 ? 1 : 0;
  }
  INFO("with a backup in " << delayed << " beats");
  CHECK(delayed > 0);
  CHECK(delayed < beats / 4);
}

TEST_CASE("data shard: each host has one backup at most") {
  lab t(2);
  t.pass(2s);
  auto& old = *t.members[1];
  old.alive = false; // The host starts a new process before the primary notices.
  t.add();
  t.pass(3s);
  CHECK(t.members[0]->replica->backups() == 1);
  CHECK(t.members[2]->replica->role() == replica_role::backup);
  // A late greeting of the former process.
  t.tell(0,
         replica_hello{{1, old.handle}, static_cast<std::uint8_t>(replica_role::backup), 0, 0, 0},
         old.handle);
  CHECK(t.members[0]->replica->backups() == 1);
}

TEST_CASE("data shard: a row of more samples than a replica has leaves the ledger as it was") {
  for (const auto kind :
       {ledger_row_kind::leased, ledger_row_kind::returned, ledger_row_kind::committed,
        ledger_row_kind::partial, ledger_row_kind::former}) {
    CAPTURE(static_cast<int>(kind));
    ledger_row row;
    row.count = std::uint64_t{1} << 63;
    row.what = static_cast<std::uint8_t>(kind);
    row.peer = 7;
    row.remaining_ns = -1;
    row.parts_included = row.parts_total = 1;
    sample_ledger scratch(60s);
    CHECK_FALSE(apply_rows(std::span(&row, 1), scratch, {}).ok());
    row.first = index_block_size - 2;
    row.count = 3;
    CHECK_FALSE(apply_rows(std::span(&row, 1), scratch, {}).ok());
    CHECK(scratch.snapshot().empty());
    row.count = 2;
    CHECK(apply_rows(std::span(&row, 1), scratch, {}).ok());
    (void)scratch.expire(1s);
  }
  // The rows of a ledger respect the limit, even if a state crosses it.
  sample_ledger crossing(60s);
  index_state committed{index_state::kind::committed, 7, {}, 1, {1, 1}, 1, 1};
  crossing.apply({index_block_size - 5, index_block_size + 5, committed});
  sample_ledger copy(60s);
  CHECK(apply_rows(rows_of(crossing, 0s), copy, 0s).ok());
  CHECK(copy.count(index_state::kind::committed) == 10);
}

TEST_CASE("data shard: a primary cannot reserve so much that its successor runs out of memory") {
  lab t(2);
  t.pass(2s);
  ledger_update whole;
  whole.from = {0, t.members[0]->handle};
  whole.stream = 77;
  whole.sequence = 1;
  whole.what = 2;
  whole.reserved = ~0ull;
  t.tell(1, whole, t.members[0]->handle);
  t.settle();
  t.kill(0, true);
  t.settle();
  REQUIRE(t.primaries() == std::vector<std::size_t>{1});
  CHECK(t.members[1]->ledger.leased_by(0) == sample_ledger::most_reserved);
  CHECK(t.members[1]->ledger.take_skipped().size() == 1);
}

TEST_CASE("data shard: pieces of a ledger that arrive early have a limit in rows") {
  piece_order order;
  std::vector<std::uint64_t> taken;
  const auto add = [&](std::uint64_t sequence, std::size_t rows) {
    ledger_update piece;
    piece.stream = 1;
    piece.sequence = sequence;
    piece.rows.resize(rows);
    order.add(piece, [&](const ledger_update& what, bool) {
      taken.push_back(what.sequence);
      return true;
    });
  };
  for (const std::uint64_t sequence : {2, 3, 4}) add(sequence, piece_order::most_early_rows / 2);
  add(1, 1);
  CHECK(taken == std::vector<std::uint64_t>{1, 2, 3});
  // The pieces that were taken have made room.
  add(5, piece_order::most_early_rows / 2);
  add(4, 1);
  CHECK(taken == std::vector<std::uint64_t>{1, 2, 3, 4, 5});
}
