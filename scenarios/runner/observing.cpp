// The observers' options, from the scenario of a run.
#include "actors/averaging/aggregator.hpp"
#include "actors/averaging/round.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/compress/codec.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/runner/run_state.hpp"
#include "scenarios/schema/security.hpp"

namespace shoal::scenarios {

namespace {

/// Returns how long a stale peer may consider itself in sync. Such a peer learns of newer epochs
/// only after a round that it cannot join, from progress records that it reads periodically.
duration staleness_allowed(const scenario& what) {
  const auto until_heard = std::max(scenarios::invariant_options{}.staleness_allowed,
                                    what.averaging.round_timeout + 6 * what.training.max_refresh);
  return until_heard + job_before_following(what);
}

bool has_takeovers(const scenario& what) {
  return what.data.replicas > 1 ||
         std::any_of(what.faults.begin(), what.faults.end(), [](const fault& f) {
           return f.kind == fault_kind::restart && f.select.starts_with(shard_prefix);
         });
}

} // namespace

observer_options runner::state::what_to_watch(const run_directory* directory) {
  observer_options out;
  out.scenario = what.name;
  out.seed = what.seed;
  out.world = what.world;
  out.record = what.record;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    out.peer_machines.push_back(static_cast<std::uint32_t>(i + 1));
  out.link_name = [this](netem::link_id link) { return in->net().name_of(link); };
  out.listener = options.listener;
  out.name_of_peer = [this](actors::peer_id peer) {
    const auto found = names_of_peers.find(peer);
    return found == names_of_peers.end() ? std::string{} : found->second;
  };
  out.region_of = [this](std::uint32_t machine, const std::string& name) {
    if (const auto peer = peer_of.find(machine); peer != peer_of.end())
      return hosts[peer->second].region;
    for (const auto& [relay, one] : what.network.relays)
      if (name == "relay." + relay) return one.region;
    const auto shards = shard_hosts(what);
    const auto shard =
        static_cast<std::size_t>(std::find(shards.begin(), shards.end(), name) - shards.begin());
    return shard > 0 && shard <= what.data.replica_regions.size()
               ? what.data.replica_regions[shard - 1]
               : what.data.region;
  };
  out.identify = [this](netem::host_index host) {
    return host_identity{in->net().name_of(host), in->net().machine_of(host),
                         in->net().incarnation(host)};
  };
  out.bytes_sent = [this] { return bytes_sent(); };
  if (what.world == "loopback" || options.node)
    out.wire = [this] {
      wire_counts out;
      if (!in) return out;
      const auto seen = in->wire()->counts();
      for (std::size_t i = 0; i < out.received_bytes.size(); ++i)
        out.received_bytes[i] = in->net().received_bytes(i);
      out.links_open = seen.links_open;
      out.links_lost = seen.links_lost;
      out.held_back = seen.held_back;
      out.bulk_window_bytes = seen.unhandled_bytes;
      // The names are string literals, so views of them stay valid.
      const auto of = [](const std::map<std::string, std::uint64_t>& counts,
                         std::string_view name) { return counts.at(std::string(name)); };
      for (const auto name : netem::wire::gate_refusal_names)
        out.handshakes_refused.emplace_back(name, of(seen.connections_refused, name));
      for (const auto name : netem::wire::refusal_names)
        if (name != "none")
          out.handshakes_refused.emplace_back(name, of(seen.connections_refused, name));
      for (const auto name : netem::wire::frame_refusal_names)
        out.frames_refused.emplace_back(name, of(seen.frames_refused, name));
      return out;
    };
  if (has_nat(what))
    out.true_reach = [this](std::uint32_t machine) {
      // The classes have the order of actors::reach, which begins with unknown.
      const auto found = peer_of.find(machine);
      return found == peer_of.end()
                 ? actors::reach::unknown
                 : static_cast<actors::reach>(static_cast<int>(hosts[found->second].nat) + 1);
    };
  if (what.training.epochs > 0) out.epochs_planned = what.training.epochs;
  out.invariants.lease_time = what.data.lease_time;
  out.invariants.staleness_allowed = staleness_allowed(what);
  for (const auto& each : what.faults)
    if (cuts_off(each.kind))
      out.invariants.longest_cut = std::max(out.invariants.longest_cut, each.lasts);
  const auto codecs = codecs_of(what.averaging, *averaged).first;
  actors::averaging_config rounds;
  apply_aggregation(what, rounds);
  out.invariants.mass.aggregator = rounds.aggregator;
  auto& setting = out.invariants.mass.setting;
  setting.known = &rounds.aggregator->options;
  setting.chosen = rounds.aggregation;
  // The mean does not depend on the pieces.
  setting.chunk_values = actors::piece_bytes(rounds, 0) / 4;
  auto& mass = out.invariants.mass.allowed;
  // A codec that drops values does so before the round, so the contribution has no other loss.
  if (codecs.contributions && !codecs.contributions->drops_values()) {
    mass.loss = kernels::largest_loss(codecs.contributions->which());
    mass.loss_of_small = kernels::smallest_loss(codecs.contributions->which());
    mass.largest = kernels::largest_value(codecs.contributions->which());
  }
  if (codecs.means) {
    mass.mean_loss = kernels::largest_loss(codecs.means->which());
    mass.mean_loss_of_small = kernels::smallest_loss(codecs.means->which());
    mass.largest = std::min(mass.largest, kernels::largest_value(codecs.means->which()));
  }
  // After a takeover, the last lease of a dead peer may stay without owner for one more lease time.
  out.invariants.takeovers = options.node || has_takeovers(what);
  if (out.invariants.takeovers) out.invariants.lease_time += what.network.detection_time;
  const auto traits = traits_of(what);
  if (traits.max_epoch_difference)
    out.invariants.max_epoch_difference = *traits.max_epoch_difference;
  if (auto attack = attacking_hosts(what, hosts); !attack.empty())
    out.invariants.honest = [attack = std::move(attack)](const std::string& host) {
      return !attack.contains(host);
    };
  out.invariants.weights_are_samples = traits.weights_are_samples;
  // Hosts of different stages have different states of one epoch.
  out.invariants.has_stages = traits.has_stages;
  out.invariants.has_experts = traits.has_experts;
  out.invariants.one_branch = !traits.averages_parameters && !traits.has_stages;
  out.invariants.computes_meanwhile = traits.computes_meanwhile;
  const bool attacked = attackers_in(what) > 0;
  // A trainer of a pipeline names the state of a stage after the first records of its peers.
  out.invariants.donors_may_lie = attacked && (traits.averages_parameters || traits.has_stages);
  out.invariants.commits_may_lie = attacked && !traits.proves_steps;
  if (options.node)
    out = local_view_of(std::move(out),
                        role.peer ? std::optional(static_cast<std::uint32_t>(*role.peer + 1))
                                  : std::nullopt);
  if (options.node && options.node->sign) {
    const auto common = common_text(what);
    out.on_contribution = [this, to = directory,
                           scenario_hash = hash_of(std::as_bytes(std::span(common))).hex()](
                              const swarm_round& round, std::uint64_t samples) {
      on_contribution(to, scenario_hash, round, samples);
    };
  }
  return out;
}

} // namespace shoal::scenarios
