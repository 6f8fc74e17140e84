#include "scenarios/runner/network_setup.hpp"

#include <limits>

namespace shoal::scenarios {
namespace {

/// Returns a host's coordinates. Each host draws from its own stream, so that more hosts do not
/// move the other hosts.
std::optional<netem::coordinates> place_of(const coordinate_options& c, std::uint64_t seed,
                                           std::size_t index) {
  if (c == coordinate_options{}) return std::nullopt;
  auto draws = stream(seed, "netem.coordinates", index);
  netem::coordinates at{to_seconds(c.x), to_seconds(c.y), to_seconds(c.height)};
  at.x += to_seconds(c.spread) * draws.normal();
  at.y += to_seconds(c.spread) * draws.normal();
  return at;
}

} // namespace

netem::path_quality quality_of(const path_options& what) {
  netem::path_quality q;
  q.delay = what.delay;
  q.jitter = what.jitter;
  q.shape = what.distribution;
  q.correlation = what.correlation;
  q.loss = {what.loss, what.bursts.p, what.bursts.r, what.bursts.in_bad, what.bursts.in_good};
  q.duplicate = what.duplicate;
  q.reorder = what.reorder;
  if (what.flow_rate.bits_per_second > 0) q.flow_cap = what.flow_rate.bits_per_second;
  return q;
}

namespace {

netem::link_queue queue_of(const network_tcp_options& what, duration buffer) {
  return {buffer > duration{} ? buffer : what.buffer, static_cast<double>(what.queue)};
}

} // namespace

netem::tcp_options tcp_of(const network_tcp_options& what) {
  netem::tcp_options tcp;
  tcp.control = what.congestion;
  tcp.initial_window = static_cast<double>(what.initial_window);
  tcp.slow_start_after_idle = what.slow_start_after_idle;
  tcp.max_window = static_cast<double>(what.max_window.bytes);
  tcp.connections = static_cast<std::uint32_t>(what.connections);
  tcp.queue = queue_of(what, what.buffer);
  return tcp;
}

network_machines build_network(const scenario& what, const std::vector<host_spec>& hosts,
                               netem::fabric& net) {
  const auto& n = what.network;
  std::map<std::string, netem::region_index> regions;
  for (const auto& name : n.regions) regions[name] = net.add_region(name);
  netem::path_quality usual;
  usual.delay = n.default_delay;
  usual.jitter = n.default_jitter;
  for (const auto& [a, index_a] : regions)
    for (const auto& [b, index_b] : regions) net.set_path(index_a, index_b, usual);
  for (const auto& link : n.links)
    net.set_path(regions.at(link.from), regions.at(link.to), quality_of(link.path));
  std::map<std::string, netem::site_index> behind; // key: region
  for (const auto& [name, link] : n.shared_links)
    behind[link.region] =
        net.add_site(name, link.up, link.down, netem::no_site, queue_of(n.tcp, link.buffer));

  auto add = [&](const std::string& name, const std::string& region, data_rate up, data_rate down) {
    netem::machine_options machine{
        .name = name, .region = regions.at(region), .up = up, .down = down};
    if (const auto found = behind.find(region); found != behind.end()) machine.site = found->second;
    if (n.tcp.push_back) machine.up_queue = netem::link_queue{.packets = 0, .pushes_back = true};
    return machine;
  };
  network_machines made;
  const auto shards = shard_hosts(what);
  for (std::size_t i = 0; i < shards.size(); ++i)
    made.shard_regions.push_back(i > 0 && i <= what.data.replica_regions.size()
                                     ? what.data.replica_regions[i - 1]
                                     : what.data.region);
  const auto add_shard = [&](std::size_t i) {
    made.shards.push_back(
        net.add_machine(add(shards[i], made.shard_regions[i], what.data.up, what.data.down)));
  };
  add_shard(0);
  std::map<std::string, std::uint64_t> per_line;
  for (const auto& group : what.peers) per_line[group.name] = group.hosts_per_line;
  std::size_t line = 0;
  netem::site_index home = netem::no_site;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const auto& host = hosts[i];
    auto machine = add(host.name, host.region, host.up, host.down);
    machine.line = quality_of(host.access);
    machine.down_queue = queue_of(n.tcp, host.buffer);
    machine.nat = host.nat;
    machine.at = place_of(host.coordinates, what.seed, i);
    if (const auto device = what.devices.find(host.device); device != what.devices.end())
      machine.serialize = device->second.serialize;
    if (per_line.at(host.group) > 1) {
      if (host.line != line)
        home = net.add_site("the line of " + host.name, host.up, host.down, machine.site);
      machine.site = home;
    }
    line = host.line;
    made.peers.push_back(net.add_machine(machine));
    made.homes.push_back(per_line.at(host.group) > 1 ? home : netem::no_site);
  }
  // Add relays after the peers, so that the peers' indices do not change. Names of relays have a
  // dot, and names of groups have none.
  for (const auto& [name, relay] : n.relays)
    net.add_relay(add("relay." + name, relay.region, relay.up, relay.down), relay.budget.bytes);
  for (std::size_t i = 1; i < shards.size(); ++i) add_shard(i);
  made.regions = std::move(regions);
  made.shared = std::move(behind);
  return made;
}

} // namespace shoal::scenarios
