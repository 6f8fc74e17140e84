// DHT nodes that talk to each other, in a world without delay.
#include "actors/dht/dht_node.hpp"
#include "actors/failpoints.hpp"
#include "kernels/base/rng.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

/// Sends prepared messages under its own address, and keeps the answers.
class faulty_node : public caf::event_based_actor {
public:
  using log = std::tuple<std::vector<query_answer>, std::vector<put_receipt>>;
  faulty_node(caf::actor_config& config, host&, std::shared_ptr<log> into)
      : caf::event_based_actor(config), into_(std::move(into)) {
    set_default_handler(caf::drop);
  }
  void on_exit() override { into_.reset(); }
  caf::behavior make_behavior() override {
    return {[this](const query_answer& m) { std::get<0>(*into_).push_back(m); },
            [this](const put_receipt& m) { std::get<1>(*into_).push_back(m); },
            [this](caf::actor to, caf::message what) { send(to, what); }};
  }

private:
  std::shared_ptr<log> into_;
};

struct network {
  mini_world world;
  std::vector<mini_host*> hosts;
  std::vector<caf::actor> nodes;
  std::shared_ptr<collector<found>::log> log = std::make_shared<collector<found>::log>();
  caf::actor asker;
  dht_config options;

  explicit network(std::size_t count, dht_config with = {}) : options(std::move(with)) {
    asker = world.spawn<collector<found>>(world.add_host("asker"), log);
    for (std::size_t i = 0; i < count; ++i)
      add(nodes.empty() ? std::vector<caf::actor>{} : std::vector{nodes.front()});
  }
  ~network() {
    nodes.clear();
    options = {};
  }
  std::size_t add(std::vector<caf::actor> bootstraps) {
    auto config = options;
    config.bootstraps = std::move(bootstraps);
    hosts.push_back(&world.add_host(fmt::format("n-{}", nodes.size())));
    nodes.push_back(world.spawn<dht_node>(*hosts.back(), config));
    world.settle();
    return nodes.size() - 1;
  }
  std::int64_t utc(duration from_now) {
    return mini_world::utc_start_ns + (world.now() + from_now).count();
  }
  void put(std::size_t at, std::string key, std::string subkey, char value, duration lifetime) {
    payload bytes{std::vector<std::byte>{static_cast<std::byte>(value)}};
    world.send(nodes[at],
               store{std::move(key), {std::move(subkey), nodes[at], bytes, utc(lifetime)}});
    world.settle();
  }
  std::string get(std::size_t at, const std::string& key, duration patience = 200ms) {
    std::get<0>(*log).clear();
    world.send(nodes[at], lookup{key, asker, 7});
    world.run_for(patience);
    if (std::get<0>(*log).size() != 1) return "no answer";
    std::string out;
    for (const auto& r : std::get<0>(*log)[0].records)
      out += (out.empty() ? "" : " ") + r->subkey + "=" +
             (r->value.empty() ? '-' : static_cast<char>(r->value.bytes()[0]));
    return out;
  }
  /// The contact at an actor of that host.
  contact at(const host& on, const caf::actor& address) {
    return {node_id::of_host(member_of(on.key()), address.node()), address};
  }
  std::size_t bad() { return world.observed<misbehaved>().size(); }
};

/// Counts look-ups of keys.
dht_config counting(std::size_t& lookups) {
  dht_config out;
  out.on_lookup = [&lookups](const lookup_report& what) { lookups += what.for_key ? 1 : 0; };
  return out;
}

} // namespace

TEST_CASE("a node alone answers from its own records") {
  network net(1);
  CHECK(net.get(0, "k") == "");
  net.put(0, "k", "b", '2', 10s);
  net.put(0, "k", "a", '1', 10s);
  CHECK(net.get(0, "k") == "a=1 b=2");
  net.world.send(net.nodes[0], withdraw{"k", "a"});
  net.world.send(net.nodes[0], withdraw{"k", "never stored"});
  CHECK(net.get(0, "k") == "b=2");
  // The last record counts, although it expires earlier.
  net.put(0, "k", "b", '3', 5s);
  CHECK(net.get(0, "k") == "b=3");
  net.put(0, "k", "b", '4', 20s);
  CHECK(net.get(0, "k") == "b=4");
  net.world.run_for(30s);
  CHECK(net.get(0, "k") == "");
  CHECK(net.bad() == 0);
}

TEST_CASE("every node finds the records of every node, and sees their changes, withdrawals and "
          "expirations") {
  for (std::size_t count : {2u, 5u, 30u}) {
    network net(count);
    for (std::size_t i = 0; i < count; ++i) net.put(i, "k", fmt::format("{:02}", i), 'a', 60s);
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += fmt::format("{}{:02}=a", i == 0 ? "" : " ", i);
    for (std::size_t i = 0; i < count; ++i) CHECK(net.get(i, "k") == all);
    net.put(1, "k", "01", 'b', 60s);
    net.world.send(net.nodes[0], withdraw{"k", "00"});
    net.world.run_for(1s);
    all = all.substr(5);
    all[3] = 'b';
    for (std::size_t i = 0; i < count; ++i) CHECK(net.get(i, "k") == all);
    net.world.run_for(60s);
    for (std::size_t i = 0; i < count; ++i) CHECK(net.get(i, "k") == "");
    CHECK(net.bad() == 0);
  }
}

TEST_CASE(
    "records survive the loss of any hosts but all their replicas, even the first bootstrap node") {
  network net(30);
  net.put(7, "k", "a", '1', 600s);
  for (std::size_t dead : {0u, 3u, 12u, 29u}) net.hosts[dead]->kill();
  net.world.run_for(1s);
  for (std::size_t i = 0; i < 30; ++i)
    if (net.hosts[i]->alive()) CHECK(net.get(i, "k", 10s) == "a=1");
  // A newcomer gets one dead address and one living one.
  auto late = net.add({net.nodes[0], net.nodes[5]});
  CHECK(net.get(late, "k", 5s) == "a=1");
  CHECK(net.bad() == 0);
}

TEST_CASE("two parts of the id space that ignore each other meet by the nodes that know both") {
  network net(0);
  // Nodes that begin with 10, with 11, and with 0.
  std::vector<mini_host*> left, right, others;
  for (int n = 0; left.size() < 24 || right.size() < 24 || others.size() < 40; ++n) {
    auto& host = net.world.add_host(fmt::format("m-{}", n));
    const auto top = member_of(host.key()).high >> 62;
    auto& into = top == 2 ? left : top == 3 ? right : others;
    if (into.size() < (top >= 2 ? 24u : 40u)) into.push_back(&host);
  }
  const auto start = [&](const std::vector<mini_host*>& some, std::vector<std::size_t> known) {
    const auto first = net.nodes.size();
    for (auto* host : some) {
      auto config = net.options;
      for (const auto each : known) config.bootstraps.push_back(net.nodes[each]);
      net.hosts.push_back(host);
      net.nodes.push_back(net.world.spawn<dht_node>(*host, config));
      net.world.settle();
      if (known.empty()) known = {first};
    }
    return first;
  };
  const auto a = start(left, {}), b = start(right, {}), c = start(others, {a, b});
  net.world.run_for(30s);
  for (int k = 0; k < 16; ++k) {
    const auto key = fmt::format("k{}", k);
    net.put(a + 5, key, "left", '1', 60s);
    net.put(b + 5, key, "right", '2', 60s);
    for (const auto reader : {a + 9, b + 9, c + 9}) CHECK(net.get(reader, key) == "left=1 right=2");
  }
  CHECK(net.bad() == 0);
}

TEST_CASE("the owner restores its records when all their replicas are gone") {
  dht_config often;
  often.republish = 20s;
  network net(40, often);
  net.put(7, "k", "a", '1', 600s);
  // All but a few nodes die, most likely with the replicas among them.
  for (std::size_t i = 10; i < 40; ++i) net.hosts[i]->kill();
  net.world.run_for(60s);
  for (std::size_t i = 0; i < 10; ++i) CHECK(net.get(i, "k", 10s) == "a=1");
  CHECK(net.bad() == 0);
}

TEST_CASE("replicas keep a record whose owner is gone") {
  dht_config often;
  often.republish = 20s;
  network net(40, often);
  net.put(7, "k", "a", '1', 3600s);
  net.hosts[7]->kill();
  // The nodes die one after the other, so that replicas have time to pass records on.
  for (std::size_t i = 10; i < 40; ++i) {
    net.hosts[i]->kill();
    net.world.run_for(60s);
  }
  for (std::size_t i = 0; i < 10; ++i)
    if (i != 7) CHECK(net.get(i, "k", 10s) == "a=1");
  CHECK(net.bad() == 0);
}

TEST_CASE("live nodes find the last records of live owners, whichever nodes die, join, store and "
          "withdraw") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    auto draws = stream(seed, "nodes");
    dht_config often;
    often.republish = 20s;
    network net(2 + draws.below(12), often);
    // By key and owner; 0: withdrawn.
    std::map<std::string, std::map<std::size_t, char>> said;
    const auto living = [&] {
      std::vector<std::size_t> out;
      for (std::size_t i = 0; i < net.hosts.size(); ++i)
        if (net.hosts[i]->alive()) out.push_back(i);
      return out;
    };
    for (int i = 0; i < 60; ++i) {
      const auto all = living();
      const auto one = all[draws.below(all.size())];
      const auto key = fmt::format("k{}", draws.below(3));
      const auto what = draws.below(100);
      if (what < 35) {
        const auto value = static_cast<char>('a' + draws.below(26));
        net.put(one, key, fmt::format("{:02}", one), value, 3600s);
        said[key][one] = value;
      } else if (what < 45) {
        net.world.send(net.nodes[one], withdraw{key, fmt::format("{:02}", one)});
        if (said[key].contains(one)) said[key][one] = 0;
      } else if (what < 60) {
        net.world.run_for(std::chrono::milliseconds(draws.below(4000)));
      } else if (what < 75) {
        net.get(one, key, std::chrono::milliseconds(draws.below(300)));
      } else if (what < 87 && all.size() > 1) {
        net.hosts[one]->kill();
      } else {
        net.add({net.nodes[draws.below(net.nodes.size())], net.nodes[one]});
      }
    }
    net.world.run_for(120s);
    for (const auto one : living())
      for (const auto& [key, by_owner] : said) {
        const auto got = net.get(one, key, 10s);
        for (const auto& [owner, value] : by_owner) {
          if (!net.hosts[owner]->alive()) continue;
          const auto wanted = fmt::format("{:02}={}", owner, value);
          const bool there =
              got.find(value == 0 ? fmt::format("{:02}=", owner) : wanted) != std::string::npos;
          const auto about = fmt::format("{} of {}: {}, and {} said {}", one, key, got, owner,
                                         value == 0 ? "nothing more" : wanted);
          CHECK_MESSAGE(there == (value != 0), about);
        }
      }
    CHECK(net.bad() == 0);
  }
}

TEST_CASE("a node with only dead addresses is alone after a while, and found again when others "
          "learn its address") {
  network net(2);
  net.hosts[0]->kill();
  net.world.settle();
  auto lonely = net.add({net.nodes[0]});
  CHECK(net.get(lonely, "k", 1s) == "no answer");
  net.world.run_for(20s);
  CHECK(net.get(lonely, "k", 1s) == "");
  net.put(1, "k", "a", '1', 600s);
  auto late = net.add({net.nodes[1], net.nodes[lonely]});
  net.world.run_for(1s);
  CHECK(net.get(late, "k", 1s) == "a=1");
  net.world.run_for(60s);
  CHECK(net.get(lonely, "k", 5s) == "a=1");
}

TEST_CASE("a node that knows no live node asks its bootstrap addresses as they are now") {
  network net(2);
  std::vector<caf::actor> there{net.nodes[0]};
  net.options.bootstraps_now = [&] { return there; };
  const auto out = net.add(there);
  net.options.bootstraps_now = nullptr;
  net.hosts[0]->kill(), net.hosts[1]->kill();
  CHECK(net.get(out, "k", 20s) == "");
  // No node at these addresses knows this one.
  const auto again = net.add({});
  net.put(again, "k", "a", '1', 600s);
  there = {net.nodes[again]};
  net.world.run_for(30s);
  CHECK(net.get(out, "k", 1s) == "a=1");
}

TEST_CASE("a node ignores false messages, counts them, and lives on") {
  network net(3);
  auto log = std::make_shared<faulty_node::log>();
  auto& host = net.world.add_host("liar");
  auto who = net.world.spawn<faulty_node>(host, log);
  auto tell = [&](auto message) {
    caf::anon_send(who, net.nodes[0], caf::make_message(std::move(message)));
    net.world.settle();
  };
  const auto me = net.at(host, who);
  auto entry = [&](std::string subkey) { return record{std::move(subkey), who, {}, net.utc(60s)}; };
  std::size_t count = 0;
  auto refused = [&] { return net.bad() == ++count; };

  tell(nodes_query{{me.id, net.asker}, 0, 1, me.id}); // in another node's name
  CHECK(refused());
  tell(nodes_query{{{}, who}, 0, 1, me.id});
  CHECK(refused());
  tell(nodes_query{{{1, 2, 3}, who}, 0, 1, me.id}); // under an id that is not its address's
  CHECK(refused());
  tell(records_query{me, 0, 1, "", 0, 1});
  CHECK(refused());
  tell(records_query{me, 0, 1, std::string(300, 'x'), 0, 1});
  CHECK(refused());
  tell(record_put{me, 0, 1, "k", {}, {}});
  CHECK(refused());
  tell(record_put{me, 0, 1, "k", std::vector<shared<signed_record>>(129), {}});
  CHECK(refused());
  auto forged = sign_record(host, "k", entry("a"), 1, false);
  forged.entry.subkey = "b";
  tell(record_put{me, 0, 1, "k", {forged}, {}});
  CHECK(refused());
  auto in_its_name = sign_record(host, "k", {"a", nullptr, {}, net.utc(60s)}, 1, false);
  in_its_name.entry.owner = net.hosts[0]->key();
  tell(record_put{me, 0, 1, "k", {in_its_name}, {}});
  CHECK(refused());
  const mini_host nobody(net.world, "a key that the swarm does not admit", 99);
  tell(record_put{
      me, 0, 1, "k", {sign_record(nobody, "k", {"a", nullptr, {}, net.utc(60s)}, 1, false)}, {}});
  CHECK(refused());
  tell(record_put{me,
                  0,
                  1,
                  "k",
                  {sign_record(host, "k", {"a", net.nodes[0], {}, net.utc(60s)}, 1, false)},
                  {}});
  CHECK(refused());
  tell(query_answer{
      me, 0, 999, 0, {}, {}, 0, 0, 0, {}}); // no request has this token; the answer may be late
  tell(put_receipt{0, 999, 0, 0});
  CHECK(net.bad() == count);
  CHECK(net.get(1, "k", 5s) == "");

  // A valid record is kept. Another owner has a record of its own under the same sub-key.
  tell(record_put{me, 0, 2, "k", {sign_record(host, "k", entry("a"), 1, false)}, {}});
  CHECK(net.bad() == count);
  CHECK(std::get<1>(*log).back().token == 2);
  net.put(2, "k", "a", '2', 60s);
  CHECK(net.bad() == count);
  const auto got = net.get(1, "k", 10s);
  CHECK((got == "a=- a=2" || got == "a=2 a=-"));
  for (const auto& found : std::get<0>(*net.log)[0].records)
    CHECK(found->owner == (found->value.empty() ? host.key() : net.hosts[2]->key()));
}

TEST_CASE("a client finds and stores records, and no node names it until others can reach it") {
  network net(5);
  net.options.serves = false;
  const auto at = net.add({net.nodes[0]});
  net.options.serves = true;
  const auto id = net.at(*net.hosts[at], net.nodes[at]).id;
  auto log = std::make_shared<faulty_node::log>();
  auto& asks = net.world.add_host("asks");
  auto who = net.world.spawn<faulty_node>(asks, log);
  // Counts the nodes that name the client.
  auto named = [&] {
    std::size_t count = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      std::get<0>(*log).clear();
      caf::anon_send(who, net.nodes[i],
                     caf::make_message(nodes_query{net.at(asks, who), 1, i, id}));
      net.world.settle();
      REQUIRE(std::get<0>(*log).size() == 1);
      const auto& nearer = std::get<0>(*log)[0].nearer;
      count +=
          std::any_of(nearer.begin(), nearer.end(), [&](const contact& c) { return c.id == id; })
              ? 1
              : 0;
    }
    return count;
  };
  net.put(at, "k", "a", '1', 600s);
  net.put(2, "k", "b", '2', 600s);
  for (std::size_t i = 0; i < net.nodes.size(); ++i) CHECK(net.get(i, "k") == "a=1 b=2");
  CHECK(named() == 0);
  net.world.send(net.nodes[at], serve{1});
  net.world.run_for(1s);
  CHECK(named() == 5);
  // Records that all other nodes lose survive here: this node got those of which it is a replica.
  net.put(2, "k", "b", '3', 600s);
  CHECK(net.get(at, "k") == "a=1 b=3");
  net.world.send(net.nodes[at], serve{0});
  net.world.run_for(1s);
  CHECK(named() == 0);
  net.put(2, "k", "b", '4', 600s);
  for (std::size_t i = 0; i < net.nodes.size(); ++i) CHECK(net.get(i, "k") == "a=1 b=4");
  net.world.send(net.nodes[at], serve{0});
  net.world.settle();
  CHECK(net.bad() == 0);
}

TEST_CASE("a node that waits for an introduction does not say that nobody is there") {
  network net(3);
  net.put(1, "k", "a", '1', 600s);
  net.options.awaits_introduction = true;
  const auto late = net.add({}), lonely = net.add({});
  net.options.awaits_introduction = false;
  CHECK(net.get(late, "k", 1s) == "no answer");
  // The look-up that has waited is answered, too.
  net.world.send(net.nodes[late], introduced{net.nodes[0]});
  net.world.run_for(1s);
  REQUIRE(std::get<0>(*net.log).size() == 1);
  CHECK(std::get<0>(*net.log)[0].records.size() == 1);
  CHECK(net.get(late, "k") == "a=1");
  // Nobody introduces the other node, which is alone after a while.
  CHECK(net.get(lonely, "k", 1s) == "no answer");
  net.world.run_for(10s);
  CHECK(net.get(lonely, "k") == "");
  CHECK(net.bad() == 0);
}

TEST_CASE("a node whose host has lost the link to a dead node names that node no more") {
  network net(4);
  net.world.run_for(1s);
  auto log = std::make_shared<faulty_node::log>();
  auto& asks = net.world.add_host("asks");
  auto who = net.world.spawn<faulty_node>(asks, log);
  const auto names = [&](std::size_t dead) {
    const auto id = net.at(*net.hosts[dead], net.nodes[dead]).id;
    std::get<0>(*log).clear();
    caf::anon_send(who, net.nodes[0], caf::make_message(nodes_query{net.at(asks, who), 1, 1, id}));
    net.world.settle();
    REQUIRE(std::get<0>(*log).size() == 1);
    const auto& nearer = std::get<0>(*log)[0].nearer;
    return std::any_of(nearer.begin(), nearer.end(), [&](const contact& c) { return c.id == id; });
  };
  net.hosts[3]->kill();
  net.world.settle();
  CHECK(names(3));
  net.world.send(net.nodes[0], link_lost{net.nodes[3]});
  net.world.settle();
  CHECK_FALSE(names(3));
  // A link may also end while both hosts live.
  net.world.send(net.nodes[0], link_lost{net.nodes[2]});
  net.world.settle();
  CHECK(names(2));
  CHECK(net.bad() == 0);
}

TEST_CASE("a node with only addresses of clients finds the nodes that they know, now or later") {
  network net(0);
  net.options.serves = false;
  const auto client = net.add({});
  const auto early = net.add({net.nodes[client]});
  net.world.run_for(30s);
  net.options.serves = true;
  const auto server = net.add({net.nodes[client]});
  net.put(server, "k", "a", '1', 600s);
  net.options.serves = false;
  const auto late = net.add({net.nodes[client]});
  CHECK(net.get(late, "k", 1s) == "a=1");
  net.put(late, "k", "b", '2', 600s);
  net.world.run_for(30s);
  CHECK(net.get(early, "k", 1s) == "a=1 b=2");
  CHECK(net.bad() == 0);
}

TEST_CASE("a wrong clock hides only the records of its owner") {
  for (auto skew : {duration(1h), duration(-1h), duration(48h)}) {
    network net(8);
    for (std::size_t i = 0; i < 8; ++i) net.put(i, "k", fmt::format("{}", i), 'a', 60s);
    net.hosts[3]->skew = skew;
    net.world.run_for(5s);
    for (std::size_t i = 0; i < 8; ++i)
      net.put(i, "k", fmt::format("{}", i), 'b', 60s + (i == 3 ? skew : 0s));
    // The host's own records are expired when they arrive, or would live too long.
    const auto seen = fmt::format("0=b 1=b 2=b 3={} 4=b 5=b 6=b 7=b", skew == 1h ? 'b' : 'a');
    for (std::size_t i = 0; i < 8; ++i)
      if (i != 3) CHECK(net.get(i, "k") == seen);
    CHECK(net.get(3, "k").substr(0, 11) == "0=b 1=b 2=b");
    // The clock is right again. The new record counts, although it ends earlier.
    net.hosts[3]->skew = {};
    net.put(3, "k", "3", 'c', 30s);
    for (std::size_t i = 0; i < 8; ++i) CHECK(net.get(i, "k") == "0=b 1=b 2=b 3=c 4=b 5=b 6=b 7=b");
    // Includes a maintenance, because the older version would still be there.
    net.world.run_for(75s);
    for (std::size_t i = 0; i < 8; ++i) CHECK(net.get(i, "k") == "");
    CHECK(net.bad() == 0);
  }
}

TEST_CASE("a node refuses stores and look-ups that exceed its limits") {
  network net(1);
  auto try_store = [&](std::string key, std::string subkey, payload value, duration life) {
    net.world.send(
        net.nodes[0],
        store{std::move(key), {std::move(subkey), net.nodes[0], std::move(value), net.utc(life)}});
    net.world.settle();
  };
  try_store("", "a", {}, 10s);
  try_store(std::string(300, 'k'), "a", {}, 10s);
  try_store("k", std::string(300, 'k'), {}, 10s);
  try_store("k", "a", payload{std::vector<std::byte>(5000)}, 10s);
  try_store("k", "a", payload::size_only(5), 10s);
  try_store("k", "a", {}, 48h);
  net.world.send(net.nodes[0], lookup{"k", nullptr, 1});
  net.world.send(net.nodes[0], lookup{"", net.asker, 1});
  net.world.send(net.nodes[0], work_done{1});
  net.world.settle();
  CHECK(net.bad() == 9);
  // A record for another host's actor is refused. A record that asks for a longer life than its
  // kind of key allows is not: it lives for the allowed time.
  net.world.send(net.nodes[0], store{"k", {"a", net.asker, {}, net.utc(10s)}});
  try_store("progress", "0000000000000002", {}, 11min);
  CHECK(net.bad() == 10);
  try_store("k", "a", {}, -1s);
  CHECK(net.bad() == 10);
  CHECK(net.get(0, "k") == "");
}

TEST_CASE("a dictionary larger than a message arrives in several messages") {
  network net(8);
  for (int i = 0; i < 300; ++i)
    net.put(static_cast<std::size_t>(i % 8), "k", fmt::format("{:03}", i), 'v', 600s);
  auto late = net.add({net.nodes[2]});
  auto all = net.get(late, "k", 5s);
  CHECK(std::count(all.begin(), all.end(), '=') == 300);
  CHECK(net.bad() == 0);
}

TEST_CASE("replicas that confirm their set are not looked up again before the refresh") {
  std::size_t lookups = 0;
  network net(30, counting(lookups));
  net.put(3, "k", "a", '0', 60s);
  const auto before = lookups;
  CHECK(before > 0);
  for (char value = '1'; value <= '9'; ++value) {
    net.world.run_for(20s);
    net.put(3, "k", "a", value, 60s);
  }
  CHECK(lookups == before);
  // No confirmation arrived for longer than `replicas_fresh`.
  net.world.run_for(40s);
  net.put(3, "k", "a", 'x', 60s);
  CHECK(lookups == before + 1);
  CHECK(net.get(17, "k") == "a=x");
  CHECK(net.bad() == 0);
}

TEST_CASE("a reader that polls one replica need not read all of them after a pause, but a paused "
          "replica does") {
  std::size_t lookups = 0;
  network net(20, counting(lookups));
  net.put(3, "k", "a", '1', 60s);
  const auto all_read = [&] {
    const auto before = lookups;
    for (std::size_t i = 0; i < net.nodes.size(); ++i) CHECK(net.get(i, "k", 100ms) == "a=1");
    return lookups - before;
  };
  CHECK(all_read() >= net.nodes.size() - 1);
  net.world.run_for(2s);
  CHECK(all_read() <= net.options.replicas);
  CHECK(net.bad() == 0);
}

TEST_CASE("a lost message is sent again, and its receiver is not given up") {
  dht_config options;
  std::size_t lookups = 0;
  options.on_lookup = [&](const lookup_report&) { ++lookups; };
  network net(12, options);
  net.put(3, "k", "a", '0', 60s);
  net.world.run_for(5s);
  const auto before = lookups;
  for (auto* host : net.hosts) host->failpoints[failpoint::receipt_dropped] = 1;
  net.put(3, "k", "a", '1', 60s);
  // The replicas confirm this record.
  net.put(3, "k", "b", '2', 60s);
  net.world.run_for(5s);
  // Looking for other replicas would cost many messages, each of which may be lost, too.
  CHECK(lookups == before);
  CHECK(net.get(7, "k") == "a=1 b=2");
  SUBCASE("a node that answers nothing is given up") {
    for (auto* host : net.hosts) host->failpoints[failpoint::receipt_dropped] = 1000;
    const auto then = lookups;
    net.put(3, "k", "a", '3', 60s);
    net.world.run_for(5s);
    CHECK(lookups > then);
  }
  CHECK(net.bad() == 0);
}

TEST_CASE("one actor under thirty ids is one contact, and one of five replicas") {
  network net(8);
  auto log = std::make_shared<faulty_node::log>();
  auto& host = net.world.add_host("liar");
  const auto who = net.world.spawn<faulty_node>(host, log);
  const auto target = node_id::of_key("progress");
  auto draws = stream(1, "ids");
  const auto tell = [&](const contact& from) {
    caf::anon_send(who, net.nodes[0], caf::make_message(nodes_query{from, 0, 1, target}));
    net.world.settle();
  };
  for (int i = 0; i < 30; ++i) tell({random_at(target, 20 + static_cast<unsigned>(i), draws), who});
  CHECK(net.bad() == 30);
  tell(net.at(host, who));
  CHECK(net.bad() == 30);
  auto& asks = net.world.add_host("asks");
  auto answers = std::make_shared<faulty_node::log>();
  const auto asker = net.world.spawn<faulty_node>(asks, answers);
  caf::anon_send(asker, net.nodes[0],
                 caf::make_message(nodes_query{net.at(asks, asker), 1, 1, target}));
  net.world.settle();
  REQUIRE(std::get<0>(*answers).size() == 1);
  const auto& named = std::get<0>(*answers)[0].nearer;
  CHECK(named.size() == 8);
  CHECK(std::count_if(named.begin(), named.end(),
                      [&](const contact& c) { return c.address == who; }) == 1);
}

TEST_CASE("a contact that is named under another host's id is not asked") {
  network net(3);
  auto log = std::make_shared<faulty_node::log>();
  auto& liar = net.world.add_host("liar");
  // Answers each question with these contacts.
  std::vector<contact> named;
  std::size_t asked = 0;
  class liar_node : public caf::event_based_actor {
  public:
    liar_node(caf::actor_config& config, host&, const std::vector<contact>& named, contact& me,
              std::size_t& asked)
        : caf::event_based_actor(config), named_(named), me_(me), asked_(asked) {
      set_default_handler(caf::drop);
    }
    caf::behavior make_behavior() override {
      return {[this](const nodes_query& m) {
        ++asked_;
        query_answer out{me_, 0, m.token, mini_world::utc_start_ns, named_, {}, 0, 0, 0, {}};
        send(m.from.address, std::move(out));
      }};
    }

  private:
    const std::vector<contact>& named_;
    contact& me_;
    std::size_t& asked_;
  };
  contact me;
  const auto lies = net.world.spawn<liar_node>(liar, named, me, asked);
  me = net.at(liar, lies);
  // A dead actor of an honest host, under the id of that host's node, and a living one under the id
  // of nobody.
  const auto dead = net.world.spawn<faulty_node>(*net.hosts[0], log);
  const auto other = net.world.spawn<faulty_node>(*net.hosts[1], log);
  caf::anon_send_exit(dead, caf::exit_reason::kill);
  net.world.settle();
  named = {net.at(*net.hosts[0], dead), {{1, 2, 3}, other}};
  net.put(0, "k", "a", '1', 7200s);
  const auto late = net.add({lies});
  net.world.run_for(10s);
  CHECK(asked > 0);
  // The liar now tells the truth. The failure of the dead actor does not count against the node.
  named = {net.at(*net.hosts[0], net.nodes[0])};
  net.world.run_for(20min);
  CHECK(net.get(late, "k", 5s) == "a=1");
}

TEST_CASE("a liar that knows a node's random streams cannot sign in the node's name") {
  network net(1);
  auto& victim = *net.hosts[0];
  // The points that a node looks up are outputs of its streams, so the streams count as known. The
  // key is not one of them: a host that has the streams and not the key signs for nobody.
  struct thief : mini_host {
    thief(mini_world& world, mini_host& of) : mini_host(world, "thief", 77), of_(of) {}
    rng random_stream(std::string_view name) const override { return of_.random_stream(name); }
    mini_host& of_;
  } other(net.world, victim);
  CHECK(other.random_stream("dht.node").next() == victim.random_stream("dht.node").next());
  auto made = sign_record(other, "k", {"a", nullptr, {}, net.utc(60s)}, 1, false);
  CHECK(made.entry.owner != victim.key());
  made.entry.owner = victim.key();
  CHECK_FALSE(not_genuine(victim, "k", made, nullptr).empty());
  net.put(0, "k", "a", '1', 60s);
  CHECK(net.get(0, "k") == "a=1");
  CHECK(std::get<0>(*net.log)[0].records[0]->owner == victim.key());
}

TEST_CASE("a member that stores thousands of keys keeps nobody else from storing") {
  dht_config options;
  options.limits.max_keys = 600;
  network net(6, options);
  for (int i = 0; i < 2000; ++i) {
    net.world.send(net.nodes[0],
                   store{fmt::format("k{}", i), {"a", net.nodes[0], {}, net.utc(600s)}});
    if (i % 50 == 0) net.world.settle();
  }
  net.world.run_for(1s);
  CHECK(std::any_of(
      net.world.observations.begin(), net.world.observations.end(), [](const auto& seen) {
        const auto* what = get_if<misbehaved>(&seen.second);
        return what != nullptr && what->why.find("too many keys of one owner") != std::string::npos;
      }));
  net.put(3, "progress", "0000000000000005", '1', 60s);
  CHECK(net.get(5, "progress") == "0000000000000005=1");
}

TEST_CASE("a reader does not see a progress record that claims a day, or another peer's sub-key") {
  network net(3);
  auto log = std::make_shared<faulty_node::log>();
  auto& host = net.world.add_host("liar");
  const auto who = net.world.spawn<faulty_node>(host, log);
  const auto tell = [&](const std::string& subkey, duration life, std::uint64_t version) {
    for (const auto& node : net.nodes)
      caf::anon_send(
          who, node,
          caf::make_message(record_put{
              net.at(host, who),
              0,
              version,
              "progress",
              {sign_record(host, "progress", {subkey, who, {}, net.utc(life)}, version, false)},
              {}}));
    net.world.settle();
  };
  const auto mine = fmt::format("{:016x}", host.id());
  for (auto life : {duration(24h), duration(11min)}) {
    tell(mine, life, 1);
    CHECK(net.get(1, "progress", 1s) == "");
  }
  CHECK(net.bad() == 0); // the owner's clock may be ahead
  tell(fmt::format("{:016x}", net.hosts[0]->id()), 1min, 2);
  CHECK(net.bad() > 0);
  CHECK(net.get(1, "progress", 1s) == "");
  tell(mine, 1min, 3);
  CHECK(net.get(1, "progress", 1s) == mine + "=-");
}

namespace {

/// A host that admits a key only once it has seen its certificate, as in a cluster.
class strict_host : public mini_host {
public:
  using mini_host::mini_host;
  std::string certificate() const override { return fmt::format("certificate of {}", name()); }
  bool admits(const key256& key, std::string_view certificate) override {
    constexpr std::string_view start = "certificate of ";
    if (certificate.starts_with(start) && stand_in_key(certificate.substr(start.size())) == key)
      known_.insert(key);
    return key == this->key() || known_.contains(key);
  }
  bool knows(const host& other) const { return known_.contains(other.key()); }

private:
  std::set<key256> known_;
};

} // namespace

TEST_CASE("a reader admits the owner of a record by the certificate that the replica passes on") {
  mini_world world;
  std::deque<strict_host> hosts;
  std::vector<caf::actor> nodes;
  auto log = std::make_shared<collector<found>::log>();
  const auto asker = world.spawn<collector<found>>(world.add_host("asker"), log);
  const auto add = [&](bool serves) {
    const auto i = hosts.size();
    auto& host = hosts.emplace_back(world, fmt::format("n-{}", i), 100 + i);
    dht_config config;
    config.serves = serves;
    if (i > 0) config.bootstraps = {nodes.front()};
    nodes.push_back(world.spawn<dht_node>(host, config));
    world.settle();
  };
  add(true);
  add(false); // the owner
  const auto put = [&](char value) {
    payload bytes{std::vector<std::byte>{static_cast<std::byte>(value)}};
    world.send(nodes[1], store{"k",
                               {"a", nodes[1], bytes,
                                mini_world::utc_start_ns + (world.now() + 600s).count()}});
    world.settle();
  };
  const auto get = [&](std::size_t at) {
    std::get<0>(*log).clear();
    world.send(nodes[at], lookup{"k", asker, 1});
    world.run_for(1s);
    REQUIRE(std::get<0>(*log).size() == 1);
    const auto& records = std::get<0>(*log)[0].records;
    return records.empty() ? '-' : static_cast<char>(records[0]->value.bytes()[0]);
  };
  put('1');
  CHECK(hosts[0].knows(hosts[1]));
  hosts[1].kill();
  world.settle();
  // The reader never hears of the owner itself.
  add(false);
  CHECK_FALSE(hosts[2].knows(hosts[1]));
  CHECK(get(2) == '1');
  CHECK(hosts[2].knows(hosts[1]));
  // A node that takes part later gets the record with its owner's certificate, too.
  add(true);
  world.run_for(1s);
  CHECK(hosts[3].knows(hosts[1]));
  CHECK(get(3) == '1');
  CHECK(world.observed<misbehaved>().empty());
  for (auto& host : hosts) host.kill();
  // The timers of the nodes end while the hosts are there.
  world.run_for(1h);
  nodes.clear();
}
