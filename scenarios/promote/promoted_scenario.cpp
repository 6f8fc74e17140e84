#include "scenarios/promote/promoted_scenario.hpp"

#include "scenarios/observe/output_text.hpp"
#include "scenarios/roles/role.hpp"
#include "scenarios/schema/describe.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::scenarios {

namespace {

/// Makes a region for each host. The delay between two regions is half of the measured round trip.
network_options network_of(const network_options& from, const inventory& to) {
  network_options out = from;
  out.regions.clear();
  out.links.clear();
  out.shared_links.clear();
  std::vector<duration> all;
  for (const auto& [name, host] : to.hosts) {
    out.regions.push_back(name);
    for (const auto& [other, round_trip] : host.delays) {
      const auto there = to.hosts.find(other);
      if (there == to.hosts.end()) continue;
      all.push_back(round_trip / 2);
      const auto back = there->second.delays.find(name);
      // Both hosts measured the path. The smaller value has less queueing in it.
      if (back != there->second.delays.end() &&
          (back->second < round_trip || (back->second == round_trip && other < name)))
        continue;
      region_link link;
      link.from = name;
      link.to = other;
      link.path.delay = round_trip / 2;
      out.links.push_back(std::move(link));
    }
  }
  if (all.empty()) return out;
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2),
                   all.end());
  out.default_delay = all[all.size() / 2];
  return out;
}

} // namespace

std::string fingerprint_of(const scenario& what) {
  return fmt::format("{}, micro_batch {}", what.workload.definition().fingerprint(what.workload),
                     what.training.micro_batch);
}

std::uint64_t memory_of_node(const inventory_host& host, std::uint64_t values) {
  return host.needs.bytes + 4 * sizeof(float) * values;
}

std::optional<promotion> promote(const scenario& from, const inventory& to, std::uint64_t values,
                                 std::vector<std::string>& errors) {
  promotion out{from, {}};
  auto& what = out.what;
  what.world = "sim";
  what.network = network_of(from.network, to);
  what.devices.clear();
  what.peers.clear();
  what.data.names.clear();
  what.data.replica_regions.clear();
  what.data.region.clear();
  const auto model = fingerprint_of(from);
  for (const auto& [name, host] : to.hosts) {
    const auto wrong = [&, who = name](const std::string& why) {
      errors.push_back(who + ": " + why);
    };
    if (host.shard) {
      what.data.names.push_back(name);
      if (what.data.region.empty()) {
        what.data.region = name;
        what.data.up = host.up;
        what.data.down = host.down;
      } else {
        what.data.replica_regions.push_back(name);
        what.data.up = std::min(what.data.up, host.up);
        what.data.down = std::min(what.data.down, host.down);
      }
      continue;
    }
    const auto like = host.group.empty()
                          ? from.peers.begin()
                          : std::find_if(from.peers.begin(), from.peers.end(),
                                         [&](const peer_group& g) { return g.name == host.group; });
    if (like == from.peers.end()) {
      std::string known;
      for (const auto& group : from.peers) known += (known.empty() ? "" : ", ") + group.name;
      wrong(
          fmt::format("the scenario has no group '{}' of peers; there are {}", host.group, known));
      continue;
    }
    peer_group group = *like;
    group.name = name;
    group.names = {name};
    group.count = 1;
    group.region = name;
    group.line.clear();
    group.up = host.up;
    group.down = host.down;
    group.access = {};
    group.over_time = {};
    group.hosts_per_line = 1;
    group.coordinates = {};
    group.start = {};
    group.start_spacing = {};
    if (host.boot_time > duration{}) group.boot_time = host.boot_time;
    group.absent = false;
    group.churn = {};
    // A host that cannot be dialled for real is outbound_only in the simulation.
    group.nat = host.address.empty() ? netem::nat_class::outbound_only : netem::nat_class::open;
    if (group.role.definition().trains) {
      group.device = name;
      what.devices[name] = {.samples_per_second = host.samples_per_second,
                            .jitter = host.jitter,
                            .step_time = host.step_time,
                            .offload = from.devices.at(like->device).offload,
                            .serialize = host.serialize,
                            .memory = host.memory};
      if (host.samples_per_second <= 0)
        wrong("nobody has measured how fast it computes: run 'shoal probe' there");
      else if (host.model != model)
        wrong(fmt::format("it was measured with another model: '{}', and the scenario has '{}'",
                          host.model, model));
      const auto needs = memory_of_node(host, values);
      if (host.memory.bytes > 0 && needs > host.memory.bytes)
        wrong(fmt::format("it cannot hold the model: a node needs {}, and it has {}",
                          bytes_text(needs), bytes_text(host.memory.bytes)));
    } else {
      group.device = like->device;
      what.devices[like->device] = from.devices.at(like->device);
    }
    what.peers.push_back(std::move(group));
  }
  if (what.data.names.size() != from.data.replicas)
    errors.push_back(
        what.data.names.empty()
            ? "no host has the text: say 'shard: true' of the one that does"
            : fmt::format(
                  "{} hosts have the text (shard: true), and the scenario's data.replicas is {}",
                  what.data.names.size(), from.data.replicas));
  if (what.peers.empty()) errors.push_back("no host is left to train: all have 'shard: true'");
  if (!from.faults.empty()) out.notes.push_back("faults are for simulations, and are left out");
  what.faults.clear();
  if (std::any_of(from.peers.begin(), from.peers.end(),
                  [](const peer_group& g) { return g.churn != churn_options{}; }))
    out.notes.push_back("churn is for simulations, and is left out");
  if (!from.network.shared_links.empty())
    out.notes.push_back("shared links are part of what was measured, and are left out");
  if (!from.network.relays.empty())
    out.notes.push_back("relays: start a node with --relay for each");
  what.network.relays.clear();
  if (!what.averaging.grid.empty()) {
    out.notes.push_back("averaging.grid follows from the number of hosts");
    what.averaging.grid.clear();
  }
  what.expect.clear();
  if (!errors.empty()) return std::nullopt;
  return out;
}

} // namespace shoal::scenarios
