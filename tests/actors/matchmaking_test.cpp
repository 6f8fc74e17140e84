// Matchmaking as a plain state machine. Look-ups come late or never, messages arrive in any order,
// and members die, give up and try again. No peer waits for ever or is sent in circles, and each
// member of a group begins it or declines it.
#include "actors/averaging/matchmaking.hpp"
#include "kernels/base/rng.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/actor_cast.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

class lab {
public:
  struct member final : round_io {
    lab& in;
    std::size_t index;
    peer_id peer;
    mini_host* host;
    caf::actor handle;
    round_request request;
    std::int64_t deadline;
    std::unique_ptr<matchmaking> state;
    std::optional<group_begun> begun;
    std::optional<reason> failed;
    std::set<std::pair<group_id, std::size_t>> declined_to; // by group and addressee
    std::set<std::size_t> watches;
    bool alive = true;

    member(lab& of, std::size_t at, peer_id id, std::int64_t until, round_request with)
        : in(of), index(at), peer(id), request(std::move(with)), deadline(until) {
      host = &in.world.add_host(fmt::format("member-{}", at));
      handle = in.world.spawn<collector<join_request>>(
          *host, std::make_shared<collector<join_request>::log>());
    }
    void start() {
      member_info self{peer,      handle,    request.weight,
                       1'000'000, 1'000'000, static_cast<std::uint8_t>(request.reached),
                       1,         {},        host->key(),
                       {},        {}};
      state = std::make_unique<matchmaking>(
          in.config, request, self, deadline, *this,
          matchmaking::events{[this](const group_begun& group) { begun = group; },
                              [this](reason why) { failed = why; }});
      state->start();
    }
    void send_to(const caf::actor& to, caf::message content) override {
      const auto other = in.index_of(to);
      if (content.match_elements<member_declined>())
        declined_to.emplace(content.get_as<member_declined>(0).group, other);
      if (in.members[other]->alive) in.queue[{index, other}].push_back({std::move(content), false});
    }
    void watch(const caf::actor& whom) override {
      const auto other = in.index_of(whom);
      if (in.members[other]->alive)
        watches.insert(other);
      else
        in.queue[{other, index}].push_back({{}, true});
    }
    void probe(std::string_view) override {}
    duration time() const override { return in.time; }
    void suspect(peer_id culprit, std::string why) override {
      in.suspicions.push_back(fmt::format("{}: {}", culprit, why));
    }
    void convict(peer_id culprit, const contradiction&) override {
      suspect(culprit, "two signed statements that contradict each other");
    }
    std::int64_t utc_ns() const override { return 1000; }
    peer_id peer_of(const caf::strong_actor_ptr& address) const override {
      for (const auto& one : in.members)
        if (caf::actor_cast<caf::strong_actor_ptr>(one->handle) == address) return one->peer;
      return 0;
    }
    member_id member_of(const caf::strong_actor_ptr& address) const override {
      return host->member_of(address);
    }
    bool is_banned(const member_id& who) const override { return host->is_banned(who); }
    signature sign(const digest& statement) const override { return host->sign(statement); }
    bool is_signed_by(const key256& key, const digest& statement,
                      const signature& by) const override {
      return host->is_signed_by(key, statement, by);
    }
  };

  explicit lab(std::uint64_t seed) : draws(stream(seed, "matchmaking")) {}
  ~lab() {
    queue.clear();
    for (auto& m : members) m->state.reset();
  }

  member& add(peer_id id, std::int64_t deadline, round_request with) {
    members.push_back(
        std::make_unique<member>(*this, members.size(), id, deadline, std::move(with)));
    return *members.back();
  }
  std::size_t index_of(const caf::actor& who) const {
    for (std::size_t i = 0; i < members.size(); ++i)
      if (members[i]->handle == who) return i;
    FAIL("a message to a stranger");
    return 0;
  }
  /// Delivers the next message of a random pair. Messages to a peer that has ended are lost.
  bool step() {
    std::vector<std::pair<std::size_t, std::size_t>> busy;
    for (const auto& [pair, waiting] : queue)
      if (!waiting.empty()) busy.push_back(pair);
    if (busy.empty()) return false;
    const auto pair = busy[draws.below(busy.size())];
    auto what = std::move(queue[pair].front());
    queue[pair].pop_front();
    auto& to = *members[pair.second];
    if (!to.alive) return true;
    ++delivered;
    const auto sender = caf::actor_cast<caf::strong_actor_ptr>(members[pair.first]->handle);
    const auto& m = what.content;
    if (what.gone)
      to.state->on_down(caf::actor_cast<caf::actor_addr>(members[pair.first]->handle));
    else if (m.match_elements<join_request>())
      to.state->on(m.get_as<join_request>(0), sender);
    else if (m.match_elements<join_accepted>())
      to.state->on(m.get_as<join_accepted>(0), sender);
    else if (m.match_elements<join_rejected>())
      to.state->on(m.get_as<join_rejected>(0), sender);
    else if (m.match_elements<join_withdrawn>())
      to.state->on(m.get_as<join_withdrawn>(0), sender);
    else if (m.match_elements<group_begun>())
      to.state->on(m.get_as<group_begun>(0), sender);
    else if (!m.match_elements<member_declined>())
      FAIL("an unknown message");
    return true;
  }
  void settle() {
    for (int i = 0; step(); ++i) REQUIRE(i < 20'000);
  }
  void end(member& who) {
    if (!std::exchange(who.alive, false)) return;
    for (auto& other : members)
      if (other->watches.erase(who.index) > 0)
        queue[{who.index, other->index}].push_back({{}, true});
  }
  /// The result of a look-up: each stored record with this probability, also of peers that have
  /// ended.
  void look_up(member& who, double seen) {
    std::vector<shared<record>> records;
    for (const auto& m : members) {
      if (m->peer == who.peer || !m->state || draws.uniform() >= seen ||
          (!m->alive && draws.uniform() < 0.5))
        continue;
      record r;
      r.subkey = fmt::format("{:016x}", m->peer);
      r.address = m->handle;
      r.value = matchmaking::bid{m->deadline, m->request.reached != reached_by::nobody}.pack();
      // A sub-key has one record, the newest.
      std::erase_if(records, [&](const auto& known) { return known->subkey == r.subkey; });
      records.push_back(std::move(r));
    }
    who.state->found_peers(records);
  }

  struct envelope {
    caf::message content;
    bool gone = false;
  };
  mini_world world;
  averaging_config config;
  duration time{};
  rng draws;
  std::vector<std::unique_ptr<member>> members;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<envelope>> queue;
  std::vector<std::string> suspicions;
  std::uint64_t delivered = 0;
};

round_request a_request(std::uint64_t weight, std::uint64_t known,
                        reached_by reached = reached_by::all) {
  round_request out;
  out.epoch = 3;
  out.state = {1, 2};
  out.values = payload{std::vector<float>(64, 1.0f)};
  out.weight = weight;
  out.known_samples = known;
  out.reached = reached;
  return out;
}

/// Three members that have started. The first one leads the earliest.
std::tuple<lab::member&, lab::member&, lab::member&> add_three(lab& l) {
  auto& first = l.add(1, 1000, a_request(1, 3));
  auto& second = l.add(2, 1001, a_request(1, 3));
  auto& third = l.add(3, 1002, a_request(1, 3));
  for (auto* m : {&first, &second, &third}) m->start();
  return {first, second, third};
}

} // namespace

TEST_CASE("matchmaking: every attempt ends, every member begins or declines its group, and no peer "
          "is suspected") {
  std::uint64_t groups = 0, together = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    INFO("seed " << seed);
    lab l(seed);
    auto& draws = l.draws;
    const auto count = 2 + draws.below(7);
    l.config.group_size = draws.below(3) == 0 ? 2 + static_cast<std::uint32_t>(draws.below(4)) : 16;
    l.config.min_group_size = 1 + static_cast<std::uint32_t>(draws.below(3));
    const bool calm = seed % 4 == 0;
    // As in Moshpit averaging, where the members of a group are known beforehand.
    const auto wanted =
        !calm && draws.below(3) == 0 ? 2 + static_cast<std::uint32_t>(draws.below(4)) : 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      // Clocks differ, and some deadlines are equal.
      const auto deadline = static_cast<std::int64_t>(1000 + draws.below(5));
      const auto reached = calm || draws.below(5) > 0 ? reached_by::all : reached_by::nobody;
      l.add(1 + i, deadline, a_request(1 + draws.below(4), 0, reached));
    }
    std::uint64_t known = 0;
    for (auto& m : l.members) known += m->request.weight;
    for (auto& m : l.members) {
      m->request.known_samples = known;
      m->request.wanted = wanted;
      if (calm || draws.below(2) == 0)
        for (auto& other : l.members)
          if (other != m && (calm || draws.below(4) > 0))
            m->request.expected.push_back({other->peer, other->handle});
    }
    for (int i = 0; i < 120; ++i) {
      const auto at = draws.below(l.members.size());
      auto& m = *l.members[at];
      const auto what = draws.below(100);
      l.time += 10ms;
      if (!m.alive) continue;
      if (!m.state) {
        if (calm || what < 40) m.start();
      } else if (what < 35) {
        if (!m.state->over()) l.look_up(m, calm ? 1.0 : 0.6);
      } else if (what < 75 || calm) {
        for (auto n = draws.below(6); n > 0; --n) l.step();
      } else if (what < 82) {
        m.state->on_deadline(false);
      } else if (what < 88) {
        l.end(m);
      } else if (m.failed && what < 96) {
        // The attempt ends, and the peer tries again later with another actor.
        l.end(m);
        auto again = m.request;
        again.expected.clear();
        l.add(m.peer, m.deadline + static_cast<std::int64_t>(1 + draws.below(50)), again).start();
      }
    }
    for (auto& m : l.members)
      if (m->alive && !m->state) m->start();
    for (int i = 0; i < 3; ++i) {
      for (auto& m : l.members)
        if (m->alive && !m->state->over()) l.look_up(*m, 1.0);
      l.settle();
    }
    if (calm && l.config.group_size >= count && l.config.min_group_size <= count) {
      ++together;
      for (auto& m : l.members)
        CHECK((m->begun && m->begun->members.size() == count &&
               m->begun->group == l.members.front()->begun->group));
    }
    for (auto& m : l.members)
      if (m->alive) m->state->on_deadline(true);
    l.settle();
    for (auto& m : l.members)
      if (m->alive) m->state->on_give_up();
    l.settle();

    for (auto& m : l.members) {
      if (!m->alive) continue;
      CHECK(m->state->over());
      CHECK(m->begun.has_value() != m->failed.has_value());
      if (!m->begun) continue;
      ++groups;
      CHECK(m->begun->members.size() <= l.config.group_size);
      CHECK(m->begun->members.size() >= l.config.min_group_size);
      for (const auto& who : m->begun->members) {
        const auto& other = *l.members[l.index_of(who.address)];
        const bool knows = !other.alive || (other.begun && other.begun->group == m->begun->group);
        const bool declines = other.declined_to.contains({m->begun->group, m->index});
        CHECK((knows || declines));
      }
    }
    for (const auto& text : l.suspicions) FAIL_CHECK(text);
  }
  MESSAGE(groups << " begun by members, " << together << " times all together");
}

TEST_CASE("matchmaking: a leader that refuses one follower sends it in no circle with another") {
  lab l(1);
  auto [refuser, honest, refused] = add_three(l);
  refuser.request.state = {9, 9}; // the refuser says that the states differ
  for (auto* m : {&honest, &refused}) l.look_up(*m, 1.0);
  // The honest peer still follows the refuser, and names it.
  l.queue[{refuser.index, honest.index}].clear();
  l.queue[{honest.index, refuser.index}].clear();
  for (int i = 0; i < 100; ++i) l.step();
  CHECK(l.delivered < 20);
  CHECK(l.queue[{refused.index, honest.index}].empty());
}

TEST_CASE("matchmaking: a member that joins again after a restart has one place in the group") {
  lab l(1);
  auto& leader = l.add(1, 1000, a_request(1, 4));
  auto& former = l.add(2, 1001, a_request(1, 4));
  auto& other = l.add(3, 1002, a_request(1, 4));
  auto& again = l.add(4, 1003, a_request(1, 4));
  // The restarted process has the same key, and nobody has heard of the end of the former one.
  again.host = former.host;
  again.handle = l.world.spawn<collector<join_request>>(
      *former.host, std::make_shared<collector<join_request>::log>());
  for (auto& m : l.members) m->start();
  for (auto* m : {&leader, &former, &other, &again}) l.look_up(*m, 1.0);
  l.settle();
  for (auto& m : l.members)
    if (m->state) m->state->on_deadline(true);
  l.settle();
  REQUIRE(leader.begun);
  CHECK(leader.begun->members.size() == 3);
  CHECK(other.begun);
  for (const auto& text : l.suspicions) CHECK_MESSAGE(false, text);
}

TEST_CASE("matchmaking: a rejection sends no peer to a member that it has banned") {
  lab l(1);
  auto [banned, refuser, peer] = add_three(l);
  // The refuser has not heard of the ban.
  peer.host->bans.insert(member_of(banned.host->key()));
  l.look_up(refuser, 1.0);
  l.settle();
  l.look_up(peer, 1.0);
  l.queue[{peer.index, banned.index}].clear();
  while (l.queue[{peer.index, refuser.index}].size() + l.queue[{refuser.index, peer.index}].size() >
         0)
    l.step();
  CHECK(l.queue[{peer.index, banned.index}].empty());
  CHECK(peer.state->leading());
}

TEST_CASE("matchmaking: a leader does not wait for a member that sits out") {
  lab l(1);
  auto& leader = l.add(1, 1000, a_request(1, 2));
  auto& idle = l.add(2, 1001, a_request(1, 2));
  auto& other = l.add(3, 1002, a_request(1, 2));
  leader.request.sit_out = {member_of(idle.host->key())};
  for (auto* m : {&leader, &other}) m->start();
  // Records in the DHT and records of progress name the idle member.
  l.look_up(other, 1.0);
  l.settle();
  idle.start();
  leader.state->expect({{idle.peer, idle.handle}, {other.peer, other.handle}}, 2);
  l.look_up(leader, 1.0);
  l.settle();
  REQUIRE(leader.begun);
  CHECK(leader.begun->members.size() == 2);
}
