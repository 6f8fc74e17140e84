#include "tests/e2e/support/dht_network.hpp"

#include "actors/dht/dht_node.hpp"
#include "actors/dht/messages.hpp"
#include "actors/observe.hpp"
#include "actors/trust/identity.hpp"
#include "kernels/base/check.hpp"
#include "scenarios/runner/world.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace shoal::e2e {

namespace {

using namespace std::chrono_literals;
struct both_clocks {
  double cpu = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
};

struct answer {
  duration at{};
  std::size_t records = 0;
  std::string value;
};

/// Notes when each look-up of its host was answered.
class client final : public actors::protocol_actor {
public:
  client(caf::actor_config& config, actors::host& on, std::map<std::uint64_t, answer>& into)
      : protocol_actor(config, on), into_(into) {}
  caf::behavior make_behavior() override {
    return {[this](const actors::found& m) {
      answer a{now(), m.records.size(), {}};
      if (!m.records.empty()) {
        auto bytes = m.records[0]->value.bytes();
        a.value.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      }
      into_[m.token] = std::move(a);
    }};
  }

private:
  std::map<std::uint64_t, answer>& into_;
};

struct network {
  dht_network what;
  dht_figures out;
  std::map<std::uint64_t, answer> answers;
  duration last_receipt{};
  std::vector<actors::lookup_report> lookups;
  bool watch_lookups = false;
  std::unique_ptr<scenarios::world> in;
  std::vector<actors::host*> hosts;
  std::vector<netem::host_index> indices;
  std::vector<caf::actor> nodes, clients;
  std::vector<actors::node_id> ids;
  std::vector<bool> dead;
  std::vector<netem::region_index> regions;
  std::size_t here = 0;                           // so many nodes are on the other side of the line
  std::function<void(std::size_t node)> on_start; // may be empty
  rng draws;
  std::uint64_t next_token = 1;

  explicit network(const dht_network& spec) : what(spec), draws(stream(spec.seed, "dht_network")) {
    scenarios::world_options options;
    options.seed = what.seed;
    options.compute_threads = 1;
    options.on_event = [this](const netem::delivered_event& event) {
      if (event.kind != netem::event_kind::message) return;
      ++out.messages;
      if (std::string_view{event.type} == "put_receipt") last_receipt = event.time;
    };
    in = std::make_unique<scenarios::world>(std::move(options));
    in->on_observation = [this](const actors::host&, const actors::observation& seen) {
      if (actors::holds_alternative<actors::misbehaved>(seen)) ++out.misbehaved;
    };
  }
  ~network() {
    nodes.clear();
    clients.clear();
    in.reset();
  }

  duration now() { return in->clock().now(); }
  void run(duration time) { in->clock().run(now() + time); }
  template <class Message>
  void tell(std::size_t node, Message message) {
    in->clock().as_host(indices[node], [&] { caf::anon_send(nodes[node], std::move(message)); });
  }
  std::uint64_t get(std::size_t node, const std::string& key) {
    auto token = next_token++;
    tell(node, actors::lookup{key, clients[node], token});
    return token;
  }
  void put(std::size_t node, const std::string& key) { put(node, key, key); }
  void put(std::size_t node, const std::string& key, std::string_view text,
           const std::string& subkey = "value") {
    std::vector<std::byte> value(text.size());
    std::transform(text.begin(), text.end(), value.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
    tell(node, actors::store{key,
                             {subkey, nullptr, payload{std::move(value)},
                              hosts[node]->utc_ns() + duration(3h).count()}});
  }
  static std::string key(std::size_t i) { return fmt::format("key.{}", i); }

  void create() {
    begin();
    const both_clocks begun_at;
    run(static_cast<std::int64_t>(what.nodes) * what.apart);
    while (answers.size() < what.nodes && now() < 10min) run(100ms);
    out.ready = answers.size();
    for (const auto& [token, a] : answers)
      out.create_virtual = std::max(out.create_virtual, to_seconds(a.at));
    run(30s); // the look-ups of the last
    const both_clocks ended;
    out.create_cpu = ended.cpu - begun_at.cpu;
    out.create_wall = ended.wall - begun_at.wall;
  }

  /// Plans the starts of all nodes.
  void begin() {
    auto& net = in->net();
    netem::path_quality path;
    path.delay = what.delay;
    for (const auto* name : {"here", "there"}) regions.push_back(net.add_region(name));
    for (auto a : regions)
      for (auto b : regions) net.set_path(a, b, path);
    actors::dht_config options;
    options.signatures = std::make_shared<actors::signature_cache>();
    options.republish = 5min;
    if (what.paths > 0) options.paths = what.paths;
    options.on_lookup = [this](const actors::lookup_report& r) {
      if (watch_lookups && r.for_key) lookups.push_back(r);
    };
    for (std::size_t i = 0; i < what.nodes; ++i)
      in->clock().at(static_cast<std::int64_t>(i) * what.apart, [this, i, options]() mutable {
        const auto region = regions[i < here ? 0 : 1];
        auto machine = in->net().add_machine(
            {.name = fmt::format("n-{}", i), .region = region, .up = {20e6}, .down = {100e6}});
        auto& host = in->boot(machine);
        for (int b = 0; b < 3 && i > 0; ++b)
          options.bootstraps.push_back(nodes[draws.below(nodes.size())]);
        hosts.push_back(&host);
        indices.push_back(in->index_of(host));
        clients.push_back(in->spawn<client>(host, answers));
        nodes.push_back(in->spawn<actors::dht_node>(host, options));
        ids.push_back(actors::node_id::of_host(actors::member_of(host.key()), nodes.back().node()));
        dead.push_back(false);
        if (on_start) on_start(i);
        tell(i, actors::lookup{"ready", clients[i], 0x1000000 + i});
      });
  }

  /// Times one store or get after the other. The time of the other nodes' upkeep is subtracted.
  void time_operations() {
    run(2min); // until contacts have been silent for long enough to be asked whether they live
    const both_clocks begun_at;
    run(60s);
    const both_clocks rested;
    out.upkeep_cpu = (rested.cpu - begun_at.cpu) / 60;
    out.upkeep_wall = (rested.wall - begun_at.wall) / 60;
    watch_lookups = true;
    auto n = static_cast<double>(std::max<std::size_t>(what.timed, 1));
    auto timed = [&](double& cpu, double& wall, double& virtual_time, auto operation) {
      const both_clocks before;
      auto begun = now();
      auto ended = operation();
      const both_clocks after;
      cpu += (after.cpu - before.cpu - 2 * out.upkeep_cpu) / n;
      wall += (after.wall - before.wall - 2 * out.upkeep_wall) / n;
      virtual_time += to_seconds(ended() - begun) / n;
    };
    for (std::size_t i = 0; i < what.timed; ++i)
      timed(out.store_cpu, out.store_wall, out.store_virtual, [&] {
        put(draws.below(what.nodes), fmt::format("timed.{}", i));
        run(2s);
        return [&] { return last_receipt; };
      });
    for (std::size_t i = 0; i < what.timed; ++i) {
      auto read = [&] {
        auto token = get((i * 37) % what.nodes, fmt::format("timed.{}", i));
        run(2s);
        return [this, token] { return answers[token].at; };
      };
      timed(out.get_cpu, out.get_wall, out.get_virtual, read);
      timed(out.poll_cpu, out.poll_wall, out.poll_virtual,
            read); // while it is still known who the replicas are
    }
    watch_lookups = false;
    for (const auto& r : lookups) {
      out.hops_max = std::max(out.hops_max, r.hops);
      out.hops_mean += r.hops / static_cast<double>(lookups.size());
      out.asked_mean += static_cast<double>(r.asked) / static_cast<double>(lookups.size());
    }
  }

  /// Owners are in the first half of the nodes, and killed nodes in the second.
  void fill() {
    for (std::size_t i = 0; i < what.keys; ++i) {
      put(draws.below(what.nodes / 2), key(i));
      if (i % 16 == 15) run(100ms);
    }
    run(5s);
  }
  void kill_some() {
    auto count = static_cast<std::size_t>(what.killed * static_cast<double>(what.nodes));
    while (out.killed < count) {
      auto who = what.nodes / 2 + draws.below(what.nodes - what.nodes / 2);
      if (dead[who]) continue;
      dead[who] = true;
      in->net().kill(indices[who],
                     out.killed % 2 == 0 ? netem::kill_scope::process : netem::kill_scope::machine);
      ++out.killed;
    }
    for (std::size_t i = 0; i < what.keys; ++i) out.lost_expected += replicas_dead(key(i)) ? 1 : 0;
  }
  bool replicas_dead(const std::string& key) {
    auto target = actors::node_id::of_key(key);
    std::vector<std::pair<actors::node_id, std::size_t>> order;
    for (std::size_t i = 0; i < ids.size(); ++i)
      order.emplace_back(actors::distance(target, ids[i]), i);
    std::partial_sort(order.begin(), order.begin() + 5, order.end());
    return std::all_of(order.begin(), order.begin() + 5,
                       [&](const auto& e) { return dead[e.second]; });
  }
  /// Each key, by a living node of the second half: no owner reads its own.
  std::size_t read_all() {
    std::vector<std::uint64_t> tokens;
    for (std::size_t i = 0; i < what.keys; ++i) {
      std::size_t who;
      do who = what.nodes / 2 + draws.below(what.nodes - what.nodes / 2);
      while (dead[who]);
      tokens.push_back(get(who, key(i)));
      if (i % 16 == 15) run(100ms);
    }
    run(30s);
    std::size_t found = 0;
    for (std::size_t i = 0; i < what.keys; ++i) {
      const auto& a = answers[tokens[i]];
      if (a.records == 1 && a.value == key(i))
        ++found;
      else if (a.records != 0)
        ++out.answered_wrongly;
    }
    return found;
  }
};

} // namespace

dht_figures run_dht_network(const dht_network& what) {
  network net(what);
  net.create();
  net.time_operations();
  net.fill();
  net.kill_some();
  net.out.answered = net.read_all();
  net.run(6min);
  net.out.answered_later = net.read_all();
  net.out.bypassed = net.in->net().bypassed();
  return net.out;
}

dht_slow_figures run_dht_slow_line(const dht_slow_line& what) {
  dht_network all;
  all.nodes = what.here + what.there;
  all.delay = 10ms;
  all.seed = what.seed;
  network net(all);
  net.here = what.here;
  net.create();
  dht_slow_figures out;
  // The answers for each key, and their times.
  std::vector<duration> given;
  struct read {
    std::size_t key = 0;
    std::uint64_t token = 0;
    bool counts = false;
  };
  std::vector<read> open;
  std::vector<std::size_t> seen(what.keys, 0);
  const auto second = [&](bool counts) {
    for (std::size_t i = 0; i < what.keys; ++i)
      net.put(what.here + i % what.there, network::key(i), fmt::format("{}", given.size()));
    given.push_back(net.now());
    for (std::size_t i = 0; i < what.keys; ++i)
      open.push_back({i, net.get(i % what.here, network::key(i)), counts});
    net.run(1s);
    std::erase_if(open, [&](const read& r) {
      const auto got = net.answers.find(r.token);
      if (got == net.answers.end()) return false;
      out.reads += r.counts ? 1 : 0;
      if (got->second.records == 0)
        out.empty += r.counts ? 1 : 0;
      else
        seen[r.key] =
            std::max(seen[r.key], static_cast<std::size_t>(std::stoul(got->second.value)));
      return true;
    });
    if (!counts) return;
    for (const auto last : seen)
      if (last + 1 < given.size())
        out.oldest = std::max(out.oldest, to_seconds(net.now() - given[last + 1]));
  };
  for (int warm = 0; warm < 5; ++warm) second(false);
  netem::path_quality slow;
  slow.delay = what.delay;
  slow.jitter = what.jitter;
  net.in->net().set_path(net.regions[0], net.regions[1], slow);
  for (duration past{}; past < what.lasts; past += 1s) second(true);
  out.unanswered = open.size();
  out.misbehaved = net.out.misbehaved;
  return out;
}

young_dht_figures run_young_dht_network(const young_dht_network& what) {
  dht_network all;
  all.nodes = what.nodes;
  all.seed = what.seed;
  all.apart = what.within / static_cast<std::int64_t>(what.nodes);
  network net(all);
  // Owners are spread evenly over the order of the starts.
  const auto step = what.nodes / what.owners;
  const auto is_owner = [&](std::size_t node) {
    return node % step == 0 && node / step < what.owners;
  };
  const auto put = [&](std::size_t node) {
    net.put(node, "common", "x", fmt::format("{:04}", node));
  };
  net.on_start = [&](std::size_t node) {
    if (!is_owner(node)) return;
    for (duration at{}; at < what.reads.back(); at += what.renewed)
      net.in->clock().at(net.now() + at, [put, node] { put(node); });
  };
  net.begin();
  young_dht_figures out;
  std::size_t reader = 0;
  for (const auto at : what.reads) {
    net.run(at - net.now());
    std::vector<std::uint64_t> tokens;
    while (tokens.size() < what.readers) {
      reader = (reader + 101) % what.nodes;
      if (!is_owner(reader)) tokens.push_back(net.get(reader, "common"));
    }
    net.run(2s);
    std::size_t least = what.owners, sum = 0;
    for (const auto token : tokens) {
      const auto found = net.answers[token].records;
      least = std::min(least, found);
      sum += found;
    }
    out.least.push_back(least);
    out.mean.push_back(static_cast<double>(sum) / static_cast<double>(what.readers));
  }
  out.messages = net.out.messages;
  out.misbehaved = net.out.misbehaved;
  return out;
}

} // namespace shoal::e2e
