// DHT nodes that talk to each other, in a world without delay.
#include "actors/dht/dht_node.hpp"
#include "actors/failpoints.hpp"
#include "kernels/base/rng.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

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
    world.send(nodes[at], store{std::move(key), {std::move(subkey), asker, bytes, utc(lifetime)}});
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
          CHECK_MESSAGE(there == (value != 0), one << " of " << key << ": " << got << ", and "
                                                   << owner << " said "
                                                   << (value == 0 ? "nothing more" : wanted));
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
  identity mine(stream(5, "liar"));
  contact me{mine.id(), who};
  auto entry = [&](std::string subkey) { return record{std::move(subkey), who, {}, net.utc(60s)}; };
  std::size_t count = 0;
  auto refused = [&] { return net.bad() == ++count; };

  tell(nodes_query{{mine.id(), net.asker}, 0, 1, mine.id()}); // in another node's name
  CHECK(refused());
  tell(nodes_query{{{}, who}, 0, 1, mine.id()});
  CHECK(refused());
  tell(records_query{me, 0, 1, "", 0, 1});
  CHECK(refused());
  tell(records_query{me, 0, 1, std::string(300, 'x'), 0, 1});
  CHECK(refused());
  tell(record_put{me, 0, 1, "k", {}});
  CHECK(refused());
  tell(record_put{me, 0, 1, "k", std::vector<shared<signed_record>>(129)});
  CHECK(refused());
  auto forged = mine.sign("k", entry("a"), 1, false);
  forged.entry.subkey = "b";
  tell(record_put{me, 0, 1, "k", {forged}});
  CHECK(refused());
  auto in_its_name = mine.sign("k", entry("a"), 1, false);
  in_its_name.owner = identity(net.hosts[0]->random_stream("dht.identity")).public_key();
  tell(record_put{me, 0, 1, "k", {in_its_name}});
  CHECK(refused());
  tell(query_answer{
      me, 0, 999, 0, {}, {}, 0, 0, 0}); // no request has this token; the answer may be late
  tell(put_receipt{0, 999, 0, 0});
  CHECK(net.bad() == count);
  CHECK(net.get(1, "k", 5s) == "");

  // A valid record is kept. Afterwards no other owner can replace it.
  tell(record_put{me, 0, 2, "k", {mine.sign("k", entry("a"), 1, false)}});
  CHECK(net.bad() == count);
  CHECK(std::get<1>(*log).back().token == 2);
  identity other(stream(6, "liar"));
  tell(record_put{me, 0, 3, "k", {other.sign("k", record{"a", who, {}, net.utc(90s)}, 2, false)}});
  CHECK(refused());
  CHECK(net.get(0, "k", 10s) != "no answer");
}

TEST_CASE("a client finds and stores records, and no node names it until others can reach it") {
  network net(5);
  net.options.serves = false;
  const auto at = net.add({net.nodes[0]});
  net.options.serves = true;
  const auto id = identity(net.hosts[at]->random_stream("dht.identity")).id();
  auto log = std::make_shared<faulty_node::log>();
  auto who = net.world.spawn<faulty_node>(net.world.add_host("asks"), log);
  identity mine(stream(5, "asks"));
  // Counts the nodes that name the client.
  auto named = [&] {
    std::size_t count = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      std::get<0>(*log).clear();
      caf::anon_send(who, net.nodes[i], caf::make_message(nodes_query{{mine.id(), who}, 1, i, id}));
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
        store{std::move(key), {std::move(subkey), net.asker, std::move(value), net.utc(life)}});
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
  try_store("k", "a", {}, -1s);
  CHECK(net.bad() == 9);
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
