#include "actors/averaging/group.hpp"
#include "actors/averaging/observations.hpp"
#include "actors/averaging/roster_plan.hpp"
#include "actors/dht/messages.hpp"
#include "tests/actors/support/mini_world.hpp"
#include "tests/actors/support/rosters.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <limits>
#include <map>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

using script = collector<join_request, join_accepted, join_rejected, join_withdrawn, group_begun,
                         member_declined, part_chunk>;

// Group actors with a directory that gives each of them the records that the test wants.
struct fixture {
  mini_world world;
  std::map<caf::actor_id, const mini_host*> hosts; ///< the scripts by id
  caf::actor directory = add_script("directory").first;
  averaging_config config; ///< applies to members that are added later
  const duration start_ = world.now();

  std::pair<caf::actor, std::shared_ptr<script::log>> add_script(const std::string& name) {
    auto log = std::make_shared<script::log>();
    auto& host = world.add_host(name);
    auto out = world.spawn<script>(host, log);
    hosts[out.id()] = &host;
    return {out, log};
  }

  /// An unsigned entry of a roster.
  member_info entry(const caf::actor& who, std::uint64_t weight = 1, std::uint64_t rate = 1) const {
    member_info out;
    out.peer = hosts.at(who.id())->id();
    out.address = who;
    out.weight = weight;
    out.rate_up = out.rate_down = rate;
    out.samples = {{weight * 100, static_cast<std::uint32_t>(weight)}};
    out.key = hosts.at(who.id())->key();
    return out;
  }
  static group_begun frame() {
    group_begun out;
    out.epoch = 7;
    out.value_count = 60;
    return out;
  }
  /// A group that `leader`, a script, closes.
  group_begun group(const caf::actor& leader, std::vector<member_info> members) const {
    auto out = frame();
    out.members = std::move(members);
    for (std::uint32_t m = 0; m < out.members.size(); ++m) {
      auto& who = out.members[m];
      if (who.address == leader) out.leader = m;
      if (who.by == signature{}) sign_entry(out, who, *hosts.at(who.address.id()));
    }
    close_roster(out, *hosts.at(leader.id()));
    return out;
  }
  join_request ask(member_info who, std::int64_t until) const {
    sign_entry(frame(), who, *hosts.at(who.address.id()));
    return {7, {}, 60, 0, until, std::move(who)};
  }
  member_declined decline(const caf::actor& who, const group_id& group,
                          std::uint32_t member) const {
    return {group, member, hosts.at(who.id())->sign(decline_statement(group))};
  }

  static round_request request(std::uint64_t weight) {
    round_request out;
    out.epoch = 7;
    out.values = payload{std::vector<float>(60, 1.0f)};
    out.weight = weight;
    out.samples = {{weight * 100, static_cast<std::uint32_t>(weight)}};
    out.rate_up = out.rate_down = 1'000'000;
    out.known_samples = 1;
    return out;
  }

  caf::actor add_member(const std::string& name, round_request with) {
    auto& host = world.add_host(name);
    with.dht = directory;
    config.poll_interval = 1h;
    auto owner = world.spawn<collector<round_report>>(
        host, std::make_shared<collector<round_report>::log>());
    return world.spawn<group_actor>(host, owner, config, std::move(with));
  }

  std::size_t blamed(peer_id whom) const {
    std::size_t out = 0;
    for (const auto& [by, what] : world.observed<misbehaved>()) out += what.culprit == whom ? 1 : 0;
    return out;
  }

  /// The deadline of members that start at the beginning. All are equal, so that ids decide.
  std::int64_t deadline() {
    return mini_world::utc_start_ns +
           (start_ + duration(averaging_config{}.matchmaking_time)).count();
  }

  /// The directory tells `whom` which peers are ready, each with this deadline.
  void tell(const caf::actor& whom, std::vector<std::pair<peer_id, caf::actor>> ready,
            duration later = {}) {
    found answer;
    for (const auto& [id, address] : ready)
      answer.records.push_back(record{fmt::format("{:016x}", id), address,
                                      matchmaking::bid{deadline() + later.count(), true}.pack(),
                                      0});
    world.send(whom, answer);
  }

  std::map<peer_id, round_ended> ended() const {
    std::map<peer_id, round_ended> out;
    for (const auto& [who, what] : world.observed<round_ended>()) out[who] = what;
    return out;
  }
};

template <class T>
const std::vector<T>& seen(const std::pair<caf::actor, std::shared_ptr<script::log>>& by) {
  return std::get<std::vector<T>>(*by.second);
}

} // namespace

TEST_CASE(
    "a group that counted on a follower of another leader ends at once, and both groups know why") {
  // Hosts: 1 the directory, 2 a late small id, 3 the old leader, 4 a member, 5 the follower that
  // changes its leader.
  fixture f;
  auto small = f.add_member("small", f.request(2));
  auto leader = f.add_member("leader", f.request(3));
  auto member = f.add_member("member", f.request(4));
  auto follower = f.add_member("follower", f.request(5));
  f.world.settle();
  f.tell(member, {{3, leader}});
  f.tell(leader, {{4, member}, {5, follower}});
  f.tell(small, {{5, follower}});
  f.world.settle();
  CHECK(f.ended().empty());
  // Host 5 asks to join and at the same time learns of the smaller id. The leader closes the group.
  f.tell(follower, {{3, leader}});
  f.tell(follower, {{2, small}, {3, leader}});
  f.world.settle();

  CHECK(f.world.now() < 1ms);
  auto ended = f.ended();
  REQUIRE(ended.size() == 4);
  CHECK(ended.at(2).outcome == outcome::ok);
  CHECK(ended.at(5).outcome == outcome::ok);
  CHECK(ended.at(2).group == ended.at(5).group);
  CHECK(ended.at(3).group == ended.at(4).group);
  CHECK(ended.at(3).group != ended.at(2).group);
  for (peer_id id : {3, 4}) {
    CHECK(ended.at(id).members == 3);
    // One of them reduces the follower's part.
    CHECK(ended.at(id).outcome == outcome::partial);
    CHECK(to_string(ended.at(id).reason) == "member_declined");
  }
  CHECK(f.world.observed<misbehaved>().empty());
  // No member stays for one that never comes.
  f.world.run_for(1s);
  for (const auto& one : {small, leader, member, follower})
    CHECK(caf::actor_cast<caf::strong_actor_ptr>(one)->get()->getf(
        caf::abstract_actor::is_terminated_flag));
}

TEST_CASE("a group does not wait for a follower whose new round takes until its timeout") {
  // Hosts: 1 the directory, 2 a late small id that begins a round and then stays silent. Host 3 is
  // the old leader, 4 a member, 5 the follower that changes its leader.
  fixture f;
  auto small = f.add_script("small");
  auto leader = f.add_member("leader", f.request(3));
  auto member = f.add_member("member", f.request(4));
  auto follower = f.add_member("follower", f.request(5));
  f.world.settle();
  f.tell(member, {{3, leader}});
  f.tell(leader, {{4, member}, {5, follower}});
  f.world.settle();
  f.tell(follower, {{3, leader}});
  f.tell(follower, {{2, small.first}, {3, leader}});
  f.world.settle();
  REQUIRE(seen<join_request>(small).size() == 1);
  auto joined = seen<join_request>(small).front().member;
  caf::send_as(small.first, follower, f.group(small.first, {f.entry(small.first), joined}));
  f.world.run_for(1ms);
  auto ended = f.ended();
  CHECK(ended.size() == 2);
  for (peer_id id : {3, 4}) {
    REQUIRE(ended.contains(id));
    CHECK(to_string(ended.at(id).reason) == "member_declined");
  }
  f.world.run_for(119s);
  CHECK(f.ended().size() == 2);
  f.world.run_for(2s); // round_timeout
  REQUIRE(f.ended().contains(5));
  CHECK(to_string(f.ended().at(5).reason) == "reducer_timeout");
}

TEST_CASE("a member that declines and reduces nothing leaves the others a partial round") {
  // Hosts: 1 the directory, 2 the leader, 3 a follower, 4 a member that the test plays, with hardly
  // any line.
  fixture f;
  auto leader = f.add_member("leader", f.request(3));
  auto member = f.add_member("member", f.request(4));
  auto ghost = f.add_script("ghost");
  f.world.settle();
  f.tell(member, {{2, leader}});
  f.tell(leader, {{3, member}, {4, ghost.first}});
  f.world.settle();
  caf::send_as(ghost.first, leader, f.ask(f.entry(ghost.first, 5), f.deadline()));
  f.world.settle();
  REQUIRE(seen<group_begun>(ghost).size() == 1);
  const auto& group = seen<group_begun>(ghost).front();
  REQUIRE(group.members.size() == 3);
  const auto boundaries = boundaries_of(group);
  REQUIRE(boundaries[2] == boundaries[3]);
  CHECK(f.ended().empty());
  caf::send_as(ghost.first, leader, f.decline(ghost.first, group.group, 2));
  caf::send_as(ghost.first, member, f.decline(ghost.first, group.group, 2));
  f.world.settle();
  auto ended = f.ended();
  REQUIRE(ended.size() == 2);
  for (peer_id id : {2, 3}) {
    CHECK(ended.at(id).outcome == outcome::partial);
    CHECK(to_string(ended.at(id).reason) == "member_declined");
    for (const auto& part : ended.at(id).parts) CHECK(part.weight == 7);
  }
  CHECK(f.world.observed<misbehaved>().empty());
}

TEST_CASE("a follower that changed its leader declines the old group, also to members that have no "
          "group yet") {
  // Hosts: 1 the directory, 2, 3 and 5 played by the test, 4 the follower.
  fixture f;
  auto small = f.add_script("small"), leader = f.add_script("leader");
  auto follower = f.add_member("follower", f.request(5));
  auto member = f.add_script("member");
  f.tell(follower, {{3, leader.first}});
  f.world.settle();
  REQUIRE(seen<join_request>(leader).size() == 1);
  f.tell(follower, {{2, small.first}, {3, leader.first}});
  f.world.settle();
  CHECK(seen<join_withdrawn>(leader).size() == 1);
  auto joined = seen<join_request>(leader).front().member;
  const auto old = f.group(leader.first, {f.entry(leader.first), joined, f.entry(member.first)});
  for (int times = 0; times < 2; ++times) {
    caf::send_as(leader.first, follower, old);
    f.world.settle();
  }
  CHECK(seen<member_declined>(leader).size() == 2);
  REQUIRE(seen<member_declined>(member).size() == 2);
  CHECK(seen<member_declined>(member).front().group == old.group);
  CHECK(seen<member_declined>(member).front().member == 1);
  CHECK(f.world.observed<contributed>().empty());
  // The new leader still takes the follower. Late messages of the old group do no harm.
  const auto wanted = f.group(small.first, {f.entry(small.first), joined});
  caf::send_as(small.first, follower, wanted);
  f.world.settle();
  REQUIRE(f.world.observed<contributed>().size() == 1);
  caf::send_as(member.first, follower,
               part_chunk{old.group, 2, 1, 0, payload{std::vector<float>(20)}});
  caf::send_as(leader.first, follower, old);
  caf::send_as(small.first, follower, wanted); // a second time: not declined
  f.world.settle();
  CHECK(seen<member_declined>(leader).size() == 3);
  CHECK(seen<member_declined>(small).empty());
  CHECK(f.world.observed<misbehaved>().empty());
  // A declining peer answers members only, and only for groups that name it.
  caf::send_as(member.first, follower, f.group(member.first, {f.entry(member.first)}));
  f.world.settle();
  CHECK(f.world.observed<misbehaved>().size() == 1);
}

TEST_CASE("the earliest deadline leads, and a later peer follows, however small its id") {
  // Hosts: 1 the directory, 2 the latecomer, 3 leads, 4 follows.
  fixture f;
  auto late = f.add_script("late");
  auto leader = f.add_member("leader", f.request(3));
  auto follower = f.add_script("follower");
  f.world.settle();
  f.tell(leader, {{4, follower.first}}, 1ms);
  f.world.settle();
  caf::send_as(late.first, leader, f.ask(f.entry(late.first, 2), f.deadline() + 1'000'000));
  f.world.settle();
  CHECK(seen<join_accepted>(late).size() == 1);
  // If the latecomer were earlier, host 3 would tell it to lead and would ask to join it.
  caf::send_as(late.first, leader, f.ask(f.entry(late.first, 2), f.deadline() - 1));
  f.world.settle();
  CHECK(seen<join_accepted>(late).size() == 1);
  REQUIRE(seen<join_request>(late).size() == 1);
  CHECK(seen<join_request>(late).front().deadline == f.deadline());
  CHECK(f.world.observed<misbehaved>().empty());
}

TEST_CASE("a peer that takes nothing but has weight, or that claims an unknown reachability, is "
          "refused") {
  fixture f;
  auto leader = f.add_member("leader", f.request(5));
  auto joiner = f.add_script("joiner");
  f.world.settle();
  const auto try_with = [&](std::uint8_t reached, std::uint8_t takes) {
    auto who = f.entry(joiner.first, 4, 1'000'000);
    who.reached = reached;
    who.takes = takes;
    caf::send_as(joiner.first, leader, f.ask(who, f.deadline() + 1'000'000));
    f.world.settle();
    return seen<join_accepted>(joiner).size();
  };
  CHECK(try_with(255, 1) == 0);
  CHECK(try_with(2, 0) == 0);
  CHECK(f.world.observed<misbehaved>().size() == 2);
  CHECK(try_with(2, 1) == 1);
}

TEST_CASE("a rejection cannot send a peer to a later deadline, so no peer is sent in a circle") {
  fixture f;
  auto leader = f.add_script("leader");
  auto follower = f.add_member("follower", f.request(5));
  auto other = f.add_script("other");
  f.tell(follower, {{2, leader.first}}, -1ms);
  f.world.settle();
  REQUIRE(seen<join_request>(leader).size() == 1);
  caf::send_as(leader.first, follower, join_rejected{0, 4, f.deadline(), other.first});
  f.world.settle();
  CHECK(seen<join_request>(other).empty());
  CHECK(seen<join_request>(leader).size() == 1); // no repeated request to the same leader
  f.tell(follower, {{2, leader.first}}, -1ms);
  f.world.settle();
  CHECK(seen<join_request>(leader).size() == 2);
  caf::send_as(leader.first, follower, join_rejected{0, 4, f.deadline() - 2'000'000, other.first});
  f.world.settle();
  CHECK(seen<join_request>(other).size() == 1);
}

TEST_CASE("messages that arrive before a group began are freed with the group actor") {
  fixture f;
  auto& host = f.world.add_host("member");
  auto owner = f.world.spawn<collector<round_report>>(
      host, std::make_shared<collector<round_report>::log>());
  auto request = fixture::request(1);
  request.dht = f.directory;
  auto actor = caf::actor_cast<caf::actor>(f.world.system().spawn<group_actor>(
      static_cast<shoal::actors::host&>(host), owner, averaging_config{}, request));
  const auto weak = caf::actor_cast<caf::weak_actor_ptr>(actor);
  f.world.settle();
  caf::send_as(actor, actor, part_claim{group_id{1, 2}, 0, 0});
  f.world.settle();
  caf::anon_send_exit(actor, caf::exit_reason::kill);
  actor = nullptr;
  f.world.run_for(1min); // the actor has no timers left, either
  CHECK(weak.lock() == nullptr);
}

TEST_CASE(
    "a leader with its quorum waits the grace period for those it expects, and takes who comes "
    "in it") {
  // Hosts: 1 the directory, 2 somebody who never comes, 3 the leader, 4 to 6 members.
  fixture f;
  const auto absent = f.add_script("absent");
  auto request = f.request(1);
  request.known_samples = 1000; // the other quorum would never come
  request.quorum = 2;
  request.grace = 3s;
  request.expected = {{2, absent.first}};
  auto leader = f.add_member("leader", request);
  auto early = f.add_member("early", request), late = f.add_member("late", request);
  f.world.settle();
  f.tell(leader, {});
  f.world.settle();
  f.world.run_for(1s);
  f.tell(early, {{3, leader}});
  f.world.settle();
  f.world.run_for(2s);
  f.tell(late, {{3, leader}});
  f.world.settle();
  f.world.run_for(900ms);
  CHECK(f.ended().empty());
  f.world.run_for(200ms);
  const auto ended = f.ended();
  REQUIRE(ended.size() == 3);
  for (const auto& [peer, what] : ended) CHECK(what.outcome == outcome::ok);
}

TEST_CASE(
    "a leader with its quorum closes at once when nobody else is expected, and without it not "
    "at all") {
  for (const std::uint32_t quorum : {1u, 2u}) {
    CAPTURE(quorum);
    fixture f;
    auto request = f.request(1);
    request.known_samples = 4;
    request.quorum = quorum;
    request.grace = 3s;
    auto leader = f.add_member("leader", request);
    f.world.settle();
    f.tell(leader, {});
    f.world.settle();
    f.world.run_for(1s);
    CHECK(f.ended().size() == (quorum == 1 ? 1 : 0));
    f.world.run_for(1min);
    const auto ended = f.ended();
    REQUIRE(ended.size() == 1);
    CHECK(ended.begin()->second.reason == (quorum == 1 ? reason::none : reason::group_too_small));
  }
}

// -- lies -----------------------------------------------------------------------------------------

TEST_CASE(
    "a join request in another member's name, or without a signature, is refused, and the one "
    "that it names still joins") {
  // Hosts: 1 the directory, 2 the leader, 3 the victim, 4 the attacker.
  fixture f;
  auto leader = f.add_member("leader", f.request(3));
  auto victim = f.add_script("victim"), attacker = f.add_script("attacker");
  f.world.settle();
  const auto until = f.deadline() + 1'000'000;
  auto good = f.ask(f.entry(victim.first, 4), until);
  // The victim's own words, from the attacker's address: the answer would go to the victim.
  caf::send_as(attacker.first, leader, good);
  // The victim's peer, the attacker's address.
  auto forged = good;
  forged.member.address = attacker.first;
  caf::send_as(attacker.first, leader, forged);
  // The victim's key.
  forged = f.ask(f.entry(attacker.first, 4), until);
  forged.member.key = good.member.key;
  caf::send_as(attacker.first, leader, forged);
  // The attacker's own name, with another weight than it signed.
  forged = f.ask(f.entry(attacker.first, 4), until);
  forged.member.weight = std::uint64_t{1} << 62;
  caf::send_as(attacker.first, leader, forged);
  // An answer to somebody else.
  forged = f.ask(f.entry(attacker.first, 4), until);
  forged.member.address = victim.first;
  caf::send_as(attacker.first, leader, forged);
  f.world.settle();
  CHECK(f.blamed(4) == 5);
  CHECK(seen<join_accepted>(attacker).empty());
  CHECK(seen<join_accepted>(victim).empty());
  CHECK(seen<join_rejected>(victim).empty());
  caf::send_as(victim.first, leader, good);
  f.world.settle();
  CHECK(seen<join_accepted>(victim).size() == 1);
}

TEST_CASE("a weight above the limit does not join, so it cannot be all of the mean") {
  fixture f;
  f.config.most_weight = 10;
  auto leader = f.add_member("leader", f.request(3));
  auto joiner = f.add_script("joiner");
  f.world.settle();
  for (const std::uint64_t weight : {std::uint64_t{1} << 62, std::uint64_t{11}}) {
    caf::send_as(joiner.first, leader, f.ask(f.entry(joiner.first, weight), f.deadline() + 1));
    f.world.settle();
  }
  CHECK(seen<join_accepted>(joiner).empty());
  CHECK(f.blamed(3) == 2);
  caf::send_as(joiner.first, leader, f.ask(f.entry(joiner.first, 10), f.deadline() + 1));
  f.world.settle();
  CHECK(seen<join_accepted>(joiner).size() == 1);
}

TEST_CASE("nobody follows a deadline that is centuries away, or a record in another's name") {
  // Hosts: 1 the directory, 2 the attacker, 3 an honest leader, 4 the follower.
  fixture f;
  auto attacker = f.add_script("attacker"), honest = f.add_script("honest");
  auto follower = f.add_member("follower", f.request(5));
  f.world.settle();
  found answer;
  for (const auto deadline : {std::numeric_limits<std::int64_t>::min(), std::int64_t{0}}) {
    answer.records = {record{fmt::format("{:016x}", 2), attacker.first,
                             matchmaking::bid{deadline, true}.pack(), 0},
                      // The same peer's record under another's sub-key.
                      record{fmt::format("{:016x}", 1), attacker.first,
                             matchmaking::bid{f.deadline() - 5, true}.pack(), 0},
                      record{fmt::format("{:016x}", 3), honest.first,
                             matchmaking::bid{f.deadline() - 1, true}.pack(), 0}};
    f.world.send(follower, answer);
    f.world.settle();
  }
  CHECK(seen<join_request>(attacker).empty());
  REQUIRE(seen<join_request>(honest).size() == 1);
  // Nor does a rejection send it there.
  caf::send_as(honest.first, follower,
               join_rejected{0, 2, std::numeric_limits<std::int64_t>::min(), attacker.first});
  f.world.settle();
  CHECK(seen<join_request>(attacker).empty());
}

TEST_CASE("a roster that the leader changed is refused, and the leader is named") {
  using change = std::function<void(fixture&, group_begun&, const caf::actor& leader)>;
  const std::vector<std::pair<const char*, change>> changes{
      {"our weight", [](auto&, auto& g, auto&) { ++g.members[1].weight; }},
      {"another's weight", [](auto&, auto& g, auto&) { ++g.members[2].weight; }},
      {"another's samples", [](auto&, auto& g, auto&) { g.members[2].samples.clear(); }},
      {"another's rate", [](auto&, auto& g, auto&) { g.members[2].rate_up = 1'000'000; }},
      {"an address of another host",
       [](auto& f, auto& g, auto& leader) {
         g.members[2].address = leader;
         sign_entry(g, g.members[2], *f.hosts.at(leader.id()));
       }},
      {"a member twice",
       [](auto& f, auto& g, auto& leader) {
         g.members[2] = g.members[0];
         ++g.members[2].peer;
         sign_entry(g, g.members[2], *f.hosts.at(leader.id()));
       }},
      {"without us", [](auto&, auto& g, auto&) { g.members.erase(g.members.begin() + 1); }},
      {"the vector", [](auto&, auto& g, auto&) { ++g.value_count; }},
      {"a second round", [](auto&, auto& g, auto&) { g.second_values = 10; }},
      {"the chunks", [](auto&, auto& g, auto&) { g.chunk_bytes = 4; }},
      {"the split", [](auto&, auto& g, auto&) { g.split = 2; }},
      {"the epoch", [](auto&, auto& g, auto&) { ++g.epoch; }},
      {"the leader", [](auto&, auto& g, auto&) { g.leader = 2; }},
      {"rate factors", [](auto&, auto& g, auto&) { g.rate_factors = {1}; }},
  };
  for (std::size_t i = 0; i <= changes.size() + 1; ++i) {
    const auto* name = i < changes.size() ? changes[i].first : "nothing";
    CAPTURE(name);
    // Hosts: 1 the directory, 2 the leader, 3 the follower, 4 a member.
    fixture f;
    auto leader = f.add_script("leader");
    auto follower = f.add_member("follower", f.request(5));
    auto member = f.add_script("member");
    f.tell(follower, {{2, leader.first}}, -1ms);
    f.world.settle();
    REQUIRE(seen<join_request>(leader).size() == 1);
    auto group = f.group(leader.first, {f.entry(leader.first), seen<join_request>(leader)[0].member,
                                        f.entry(member.first)});
    if (i < changes.size()) {
      changes[i].second(f, group, leader.first);
      close_roster(group, *f.hosts.at(leader.first.id()));
    }
    if (i == changes.size()) group.by = {};
    caf::send_as(leader.first, follower, group);
    f.world.settle();
    CHECK(f.world.observed<contributed>().size() == (i > changes.size() ? 1 : 0));
    CHECK(f.blamed(2) == (i > changes.size() ? 0 : 1));
    if (i <= changes.size()) {
      REQUIRE(f.ended().contains(3));
      CHECK(to_string(f.ended().at(3).reason) == "bad_message");
    }
  }
}

TEST_CASE("two rosters of one leader for one attempt are a proof against it") {
  // Hosts: 1 the directory, 2 the leader, 3 the follower, 4 a member.
  fixture f;
  auto leader = f.add_script("leader");
  auto follower = f.add_member("follower", f.request(5));
  auto member = f.add_script("member");
  f.tell(follower, {{2, leader.first}}, -1ms);
  f.world.settle();
  REQUIRE(seen<join_request>(leader).size() == 1);
  const auto us = seen<join_request>(leader)[0].member;
  caf::send_as(leader.first, follower,
               f.group(leader.first, {f.entry(leader.first), us, f.entry(member.first)}));
  f.world.settle();
  CHECK(f.world.observed<contradicted>().empty());
  caf::send_as(leader.first, follower, f.group(leader.first, {f.entry(leader.first), us}));
  f.world.settle();
  const auto proofs = f.world.observed<contradicted>();
  REQUIRE(proofs.size() == 1);
  CHECK(proofs[0].second.culprit == 2);
  const auto& by = *f.hosts.at(leader.first.id());
  CHECK(proofs[0].second.proof.holds(
      [&](const key256& key, const digest& what, const signature& with) {
        return by.is_signed_by(key, what, with);
      }));
}

TEST_CASE(
    "a follower signs no decline for a group that a member passes on, or for a second round of "
    "its own group") {
  // Hosts: 1 the directory, 2 the leader, 3 the follower, 4 a member.
  fixture f;
  auto leader = f.add_script("leader");
  auto follower = f.add_member("follower", f.request(5));
  auto member = f.add_script("member");
  f.tell(follower, {{2, leader.first}}, -1ms);
  f.world.settle();
  const auto us = seen<join_request>(leader)[0].member;
  const auto group = f.group(leader.first, {f.entry(leader.first), us, f.entry(member.first)});
  caf::send_as(member.first, follower, group);
  f.world.settle();
  CHECK(seen<member_declined>(leader).empty());
  CHECK(f.blamed(4) == 1);
  // The leader's own message still begins the group.
  caf::send_as(leader.first, follower, group);
  f.world.settle();
  CHECK(f.world.observed<contributed>().size() == 1);
  auto second = group;
  second.group = second_group(group.group);
  caf::send_as(leader.first, follower, second);
  f.world.settle();
  CHECK(seen<member_declined>(leader).empty());
  CHECK(f.blamed(2) == 1);
}

TEST_CASE("a bad leader is followed only after all others") {
  // Hosts: 1 the directory, 2 the bad leader, 3 a peer for which a leader waits, 4 the follower.
  for (const bool bad : {false, true}) {
    fixture f;
    auto leader = f.add_script("leader");
    auto request = f.request(5);
    request.expected = {{3, f.add_script("other").first}};
    if (bad) request.bad_leaders.insert(member_of(f.hosts.at(leader.first.id())->key()));
    auto follower = f.add_member("follower", request);
    f.tell(follower, {{2, leader.first}}, -1ms);
    f.world.settle();
    CHECK(seen<join_request>(leader).size() == (bad ? 0 : 1));
    // The bad leader may join.
    caf::send_as(leader.first, follower, f.ask(f.entry(leader.first, 4), f.deadline() - 1'000'000));
    f.world.settle();
    CHECK(seen<join_accepted>(leader).size() == (bad ? 1 : 0));
  }
}

TEST_CASE("a leader does not wait for a bad leader, and for others until its deadline") {
  // Hosts: 1 the directory, 2 a peer that is ready later, 3 the leader.
  for (const bool bad : {false, true}) {
    fixture f;
    auto other = f.add_script("other");
    auto request = f.request(5);
    request.expected = {{2, other.first}};
    if (bad) request.bad_leaders.insert(member_of(f.hosts.at(other.first.id())->key()));
    auto leader = f.add_member("leader", request);
    f.tell(leader, {{2, other.first}}, 1s);
    f.world.settle();
    CHECK(f.world.now() < 1ms);
    CHECK(f.world.observed<contributed>().size() == (bad ? 1 : 0));
  }
}

TEST_CASE("a leader that never begins a group is named as a bad leader") {
  fixture f;
  auto leader = f.add_script("leader");
  auto& host = f.world.add_host("follower");
  auto log = std::make_shared<collector<round_report>::log>();
  auto owner = f.world.spawn<collector<round_report>>(host, log);
  auto request = f.request(5);
  request.dht = f.directory;
  auto follower = f.world.spawn<group_actor>(host, owner, averaging_config{}, request);
  f.tell(follower, {{2, leader.first}}, -1ms);
  f.world.run_for(1min);
  const auto& reports = std::get<std::vector<round_report>>(*log);
  REQUIRE(reports.size() == 1);
  CHECK(to_string(reports[0].result->reason) == "matchmaking_timeout");
  CHECK(reports[0].result->bad_leader == member_of(f.hosts.at(leader.first.id())->key()));
}

TEST_CASE("a follower hears of its leader's end, also if it has banned the leader") {
  for (const bool banned : {false, true}) {
    fixture f;
    auto& evil = f.world.add_host("leader");
    auto seen_by_leader = std::make_shared<script::log>();
    auto leader = f.world.spawn<script>(evil, seen_by_leader);
    auto& host = f.world.add_host("follower");
    auto log = std::make_shared<collector<round_report>::log>();
    auto owner = f.world.spawn<collector<round_report>>(host, log);
    auto request = f.request(5);
    request.dht = f.directory;
    const averaging_config config;
    auto follower = f.world.spawn<group_actor>(host, owner, config, request);
    f.tell(follower, {{evil.id(), leader}}, -1ms);
    f.world.settle();
    REQUIRE(std::get<std::vector<join_request>>(*seen_by_leader).size() == 1);
    if (banned) host.bans.insert(member_of(evil.key()));
    evil.kill();
    f.world.run_for(duration(config.matchmaking_time) + 1s);
    CHECK(std::get<std::vector<round_report>>(*log).size() == 1);
  }
}

TEST_CASE(
    "one leader's word that the states differ does not end the attempt while there are others") {
  // Hosts: 1 the directory, 2 the liar, 3 an honest leader, 4 the follower.
  fixture f;
  auto liar = f.add_script("liar"), honest = f.add_script("honest");
  auto follower = f.add_member("follower", f.request(5));
  f.tell(follower, {{2, liar.first}, {3, honest.first}}, -1ms);
  f.world.settle();
  REQUIRE(seen<join_request>(liar).size() == 1);
  const join_rejected out_of_sync{static_cast<std::uint8_t>(reason::out_of_sync), 0, 0, {}};
  caf::send_as(liar.first, follower, out_of_sync);
  f.world.settle();
  REQUIRE(seen<join_request>(honest).size() == 1);
  CHECK(f.ended().empty());
  // A new look-up does not bring the liar back.
  f.tell(follower, {{2, liar.first}, {3, honest.first}}, -1ms);
  f.world.settle();
  CHECK(seen<join_request>(liar).size() == 1);
  caf::send_as(honest.first, follower, out_of_sync);
  f.world.settle();
  REQUIRE(f.ended().contains(4));
  CHECK(to_string(f.ended().at(4).reason) == "out_of_sync");
}

TEST_CASE("strangers cannot fill the memory of a peer before its group begins, nor displace a "
          "member's early messages") {
  // Hosts: 1 the directory, 2 the leader, 3 the follower, 4 a member, 5 the stranger.
  fixture f;
  auto leader = f.add_script("leader");
  auto follower = f.add_member("follower", f.request(5));
  auto member = f.add_script("member"), stranger = f.add_script("stranger");
  f.tell(follower, {{2, leader.first}, {4, member.first}}, -1ms);
  f.world.settle();
  const auto us = seen<join_request>(leader)[0].member;
  const auto group = f.group(leader.first, {f.entry(leader.first), us, f.entry(member.first)});
  // Longer than any chunk.
  caf::send_as(stranger.first, follower,
               part_chunk{group.group, 0, 1, 0, payload::size_only(2 << 20)});
  f.world.settle();
  CHECK(f.blamed(5) == 1);
  // Chunks of small vectors have tables that are larger than they are.
  for (int i = 0; i < 3; ++i)
    caf::send_as(stranger.first, follower,
                 part_chunk{group.group, 0, 1, 0, payload::size_only(240)});
  f.world.settle();
  CHECK(f.blamed(5) == 1);
  for (int i = 0; i < 200; ++i)
    caf::send_as(stranger.first, follower, part_claim{group.group, 0, 0});
  f.world.settle();
  CHECK(f.blamed(5) > 30);  // more messages than one may send
  CHECK(f.blamed(0) > 100); // another stranger may have sent most of them
  CHECK(f.blamed(4) == 0);
  // The member's own limit is not affected.
  caf::send_as(member.first, follower, f.decline(member.first, group.group, 2));
  f.world.settle();
  CHECK(f.blamed(4) == 0);
  for (int i = 0; i < 100; ++i) caf::send_as(member.first, follower, part_claim{group.group, 2, 0});
  f.world.settle();
  CHECK(f.blamed(4) > 50);
  CHECK(f.ended().empty());
  caf::send_as(leader.first, follower, group);
  f.world.settle();
  // The decline that came early counts.
  caf::send_as(leader.first, follower, f.decline(leader.first, group.group, 0));
  f.world.settle();
  CHECK(f.ended().contains(3));
}

TEST_CASE("a member that lies before its group begins is blamed, and the leader is not") {
  // Hosts: 1 the directory, 2 the leader, 3 the follower, 4 the liar.
  fixture f;
  auto leader = f.add_script("leader");
  auto follower = f.add_member("follower", f.request(5));
  auto liar = f.add_script("liar");
  f.tell(follower, {{2, leader.first}, {4, liar.first}}, -1ms);
  f.world.settle();
  const auto us = seen<join_request>(leader)[0].member;
  const auto group = f.group(leader.first, {f.entry(leader.first), us, f.entry(liar.first)});
  caf::send_as(liar.first, follower,
               part_chunk{group.group, 0, 1, 0, payload::size_only(80)}); // in the leader's name
  f.world.settle();
  CHECK(f.blamed(4) == 0); // the follower does not know the group yet
  caf::send_as(leader.first, follower, group);
  f.world.settle();
  CHECK(f.blamed(4) == 1);
  CHECK(f.blamed(2) == 0);
}

TEST_CASE("a peer watches no more peers than four groups can take") {
  fixture f;
  f.config.group_size = 2;
  auto follower = f.add_member("follower", f.request(5));
  f.world.settle();
  std::vector<std::pair<peer_id, caf::actor>> many;
  for (int i = 0; i < 20; ++i) {
    const auto one = f.add_script(fmt::format("s-{}", i)).first;
    many.emplace_back(f.hosts.at(one.id())->id(), one);
  }
  f.tell(follower, many, 1ms);
  f.world.settle();
  CHECK(f.blamed(0) == 1);
  f.tell(follower, many, 1ms);
  f.world.settle();
  CHECK(f.blamed(0) == 1);
}
