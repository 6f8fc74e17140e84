// Builds the world of a run and starts its hosts.
#include "actors/averaging/aggregator.hpp"
#include "actors/conduct/attacks_on_values.hpp"
#include "actors/conduct/conducts.hpp"
#include "actors/data/data_shard.hpp"
#include "actors/training/peer_config.hpp"
#include "actors/trust/identity.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/runner/run_state.hpp"
#include "scenarios/schema/security.hpp"
#include "scenarios/workloads/prepared.hpp"

#include <caf/send.hpp>

namespace shoal::scenarios {

namespace {

actors::peer_config peer_config_of(const scenario& from, const host_spec& host,
                                   std::shared_ptr<actors::conduct> conduct) {
  const auto& device = from.devices.at(host.device);
  actors::peer_config out;
  out.micro_batch = from.training.micro_batch;
  out.epochs = from.training.epochs;
  out.prefetch_samples = static_cast<std::uint32_t>(from.data.prefetch_samples);
  out.min_refresh = from.training.min_refresh;
  out.max_refresh = from.training.max_refresh;
  out.record_lifetime = from.training.record_lifetime;
  out.max_uploads = from.training.max_uploads;
  out.device = {device.samples_per_second, device.jitter, device.step_time, device.offload};
  auto& averaging = out.averaging;
  averaging.group_size = static_cast<std::uint32_t>(from.averaging.group_size);
  averaging.min_group_size = static_cast<std::uint32_t>(from.averaging.min_group_size);
  averaging.matchmaking_time = from.averaging.matchmaking_time;
  averaging.round_timeout = from.averaging.round_timeout;
  averaging.sender_timeout = from.averaging.sender_timeout;
  averaging.max_norm_ratio = from.averaging.max_norm_ratio;
  averaging.split = from.averaging.split;
  apply_aggregation(from, averaging);
  out.conduct = std::move(conduct);
  if (const auto& method = from.training.method.definition(); method.configure)
    method.configure(from, out);
  // Limit the chunk size: few large chunks fit in a line's window, and the line would idle between
  // them.
  out.fetch.chunk_bytes =
      std::min(averaging.chunk_bytes > 0 ? averaging.chunk_bytes : actors::largest_piece,
               actors::largest_piece);
  out.reachability = reachability_of(from);
  return out;
}

/// A sample source that skips the samples of an earlier run.
class later_source final : public actors::sample_source {
public:
  later_source(std::shared_ptr<const actors::sample_source> all, std::uint64_t first)
      : all_(std::move(all)), first_(first) {}
  std::uint32_t sample_bytes() const override { return all_->sample_bytes(); }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    all_->read(first_ + index, out);
  }
  bool is_size_only() const override { return all_->is_size_only(); }

private:
  std::shared_ptr<const actors::sample_source> all_;
  std::uint64_t first_;
};

} // namespace

world_options runner::state::options_of_world() {
  world_options out;
  if (!simulated()) out.mode = netem::time_mode::wall_clock;
  out.seed = seed();
  out.detection_time = what.network.detection_time;
  // Work on sizes alone takes no time, so it needs no threads.
  out.compute_threads = simulated() && work->work()->is_size_only() ? 0 : options.threads;
  out.prepare_compute_thread = prepare_compute_thread;
  out.model = what.network.model;
  out.tcp = tcp_of(what.network.tcp);
  out.hole_punching = what.network.hole_punching;
  out.on_event = [this](const netem::delivered_event& event) { on_event(event); };
  if ((!options.out.empty() || options.listener != nullptr) && what.record.transfers > 0)
    out.on_transfer = [this](const netem::transfer_record& transfer) {
      std::lock_guard guard(watching);
      if (!over) observers->on_transfer(transfer);
    };
  if (what.world == "loopback" || options.node) out.real = network_between_hosts();
  return out;
}

void runner::state::build() {
  in = std::make_unique<world>(options_of_world());
  in->on_observation = [this](const actors::host& from, const actors::observation& seen) {
    on_observation(from, seen);
  };
  in->on_ban = [this](const actors::host& by, const banned_member& what) { on_ban(by, what); };
  in->on_probe = [this](netem::host_index host, std::string_view point) {
    {
      std::lock_guard guard(watching);
      if (!over) observers->on_point(point);
    }
    faults->reached(host, point);
  };

  if (what.failpoints > 0)
    in->takes_failpoint = [this](netem::host_index host, std::string_view branch) {
      return takes_failpoint(host, branch);
    };

  const auto network = build_network(what, hosts, in->net());
  machines = network.peers;
  on_hosts = std::make_unique<effects>(*in);
  std::vector<fault_target> targets;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    peer_of[machines[i]] = i;
    targets.push_back({machines[i], hosts[i].name, hosts[i].region, true});
    on_hosts->add_line(machines[i], {hosts[i].up, hosts[i].down, quality_of(hosts[i].access)});
  }
  const auto shard_names = shard_hosts(what);
  for (std::size_t i = 0; i < network.shards.size(); ++i) {
    if (!runs_shard(i)) continue;
    shards.push_back({network.shards[i], nullptr, nullptr, {}});
    targets.push_back({network.shards[i], shard_names[i], network.shard_regions[i], false});
    on_hosts->add_line(network.shards[i], {what.data.up, what.data.down, {}});
  }
  faults = std::make_unique<fault_engine>(
      // In a cluster, real failures replace the scenario's faults.
      *in, *on_hosts, options.node ? std::vector<fault>{} : what.faults, std::move(targets), seed(),
      fault_engine::hooks{[this](netem::machine_index machine) { start_host(machine); },
                          [this](const fault_note& note) {
                            const auto now = in->clock().now();
                            std::lock_guard guard(watching);
                            observers->on_fault(stamp(now), note.fault, action_name(note.kind),
                                                note.begins, cuts_off(note.kind), note.hosts);
                          }});

  schedule_hosts();
  faults->schedule();
  std::vector<std::size_t> groups;
  for (const auto& host : hosts)
    groups.push_back(static_cast<std::size_t>(&group_of(host) - what.peers.data()));
  lines = std::make_unique<line_engine>(*in, *on_hosts, what, network, std::move(groups),
                                        std::move(line_plans));
  if (!options.node || options.node->shape) lines->schedule();
}

/// Starts the shards and schedules the starts of peers, by their groups or their churn.
void runner::state::schedule_hosts() {
  for (auto& shard : shards) start_shard(shard);
  pool = std::make_shared<actors::state_pool>(averaged, options.share_states,
                                              start ? std::optional(start->state) : std::nullopt);
  codecs = codecs_of(what.averaging, *averaged);
  churn = std::make_unique<churn_engine>(churn_engine::hooks{
      [this](duration when, std::function<void()> action) {
        in->clock().at(when, std::move(action));
      },
      [this](netem::machine_index machine) { return in->net().host_on(machine) != netem::no_host; },
      [this](netem::machine_index machine) { start_peer(machine); },
      [this](netem::machine_index machine, fault_scope ending) {
        in->net().kill(in->net().host_on(machine), ending == fault_scope::machine
                                                       ? netem::kill_scope::machine
                                                       : netem::kill_scope::process);
      }});
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (options.node) {
      if (runs_peer(i)) in->clock().at({}, [this, machine = machines[i]] { start_peer(machine); });
    } else if (join_plan[i])
      churn->add(machines[i], std::move(*join_plan[i]));
    else if (!hosts[i].absent)
      in->clock().at(hosts[i].start, [this, machine = machines[i]] {
        if (in->net().host_on(machine) == netem::no_host) start_peer(machine);
      });
}

/// Starts a DHT node. Its bootstraps are a few running nodes that accept connections, like a list
/// that an operator writes. Any bootstrap may be dead a moment later.
caf::actor runner::state::start_node(actors::host& on, std::shared_ptr<actors::conduct> conduct) {
  constexpr std::size_t most_bootstraps = 4;
  actors::dht_config config;
  config.signatures = signatures;
  // To other hosts, a proof of another scenario's swarm proves nothing.
  for (const auto& each : in->bans_of(on))
    if (each.what.swarm == in->swarm()) config.proofs.push_back(each.what.what);
  config.conduct = std::move(conduct);
  // Keep the list of replicas longer, so that a node that stores rarely skips most lookups.
  config.replicas_fresh = std::max(config.replicas_fresh, 2 * what.training.max_refresh);
  const auto machine = in->net().machine_of(in->index_of(on));
  // With address translation in the scenario, a peer's host serves only after the peer knows that
  // other hosts can reach it. The shard's host serves at once.
  config.serves = !has_nat(what) || !peer_of.contains(machine);
  const auto host = in->index_of(on);
  if (options.node) {
    config.serves = options.node->listen.has_value();
    config.awaits_introduction = !options.node->join.empty();
    for (const auto& other : in->wire()->connected_peers(host))
      if (other.service) config.bootstraps.push_back(other.service);
  } else {
    std::vector<netem::machine_index> written_down;
    {
      std::lock_guard guard(watching);
      for (const auto& [other, node] : nodes) {
        const auto peer = peer_of.find(other);
        const bool open =
            peer == peer_of.end() || hosts[peer->second].nat == netem::nat_class::open;
        if (open && written_down.size() < most_bootstraps) written_down.push_back(other);
      }
    }
    // A restarted process keeps the address of its machine.
    config.bootstraps_now = [this, written_down] {
      std::vector<caf::actor> out;
      std::lock_guard guard(watching);
      for (const auto other : written_down)
        if (const auto found = nodes.find(other); found != nodes.end())
          out.push_back(found->second);
      return out;
    };
    config.bootstraps = config.bootstraps_now();
  }
  auto node = in->spawn<actors::dht_node>(on, std::move(config));
  if (!node) return node;
  {
    std::lock_guard guard(watching);
    nodes[machine] = node;
  }
  if (options.node) {
    in->wire()->introduce(host, node);
    for (const auto& other : in->wire()->connected_peers(host)) meet(host, other);
    for (const auto& where : options.node->join) in->wire()->join(host, where);
  }
  if (in->net().alive(host)) return node;
  std::lock_guard guard(watching);
  if (auto found = nodes.find(machine); found != nodes.end() && found->second == node)
    nodes.erase(found);
  return node;
}

void runner::state::start_host(netem::machine_index machine) {
  for (auto& shard : shards)
    if (shard.machine == machine) return start_shard(shard);
  start_peer(machine);
}

void runner::state::start_shard(shard_unit& shard) {
  if (draining) return;
  auto& host = in->boot(shard.machine);
  actors::data_shard_config config;
  config.lease_time = what.data.lease_time;
  config.proves_rounds = traits_of(what).proves_steps;
  if (what.security.kind == security_kind::btard)
    config.judging_members =
        std::max<std::uint64_t>(what.averaging.min_group_size, actors::fewest_members);
  const auto number = this->role.shard.value_or(static_cast<std::size_t>(&shard - shards.data()));
  const auto conduct = options.conduct.empty()
                           ? actors::make_conduct(conduct_of_shard(what, number), host)
                           : actors::make_conduct(options.conduct, host);
  if (conduct->alters_messages()) in->alter_messages(host, conduct);
  config.dht = start_node(host, conduct);
  config.dial_timeout = reachability_of(what).timeout / 2;
  auto& replication = config.replication;
  replication.replicas = static_cast<unsigned>(what.data.replicas);
  replication.detection_time = what.network.detection_time;
  replication.beat = std::min(replication.beat, what.network.detection_time / 4);
  replication.seek_time = 2 * what.network.detection_time;
  replication.follow_time = 4 * what.network.detection_time + replication.seek_time;
  replication.conduct = conduct;
  config.find_shard = find_shards(host);
  // One member may hold several times the samples of a whole round.
  const auto batch = traits_of(what).target_batch.value_or(0);
  config.max_leased = std::max(config.max_leased, 8 * (batch + what.data.prefetch_samples));
  const auto index_block =
      options.node ? index_block_of(host.utc_ns(), *this->role.shard) : shards_started++;
  auto made = std::make_shared<actors::sample_ledger>(what.data.lease_time, index_block);
  auto role = std::make_shared<std::atomic<actors::replica_role>>(
      what.data.replicas == 1 ? actors::replica_role::primary : actors::replica_role::seeking);
  config.role = role;
  std::shared_ptr<const actors::sample_source> source = work->source();
  if (corpus_tree)
    source = config.corpus =
        std::make_shared<const actors::corpus>(std::move(source), corpus_tree, corpus.first);
  else if (start)
    source = std::make_shared<later_source>(std::move(source), start->data_from);
  const auto serves = std::make_shared<std::atomic<bool>>(false);
  auto serve = [this, &host, config, source, made, serves] {
    if (draining || !in->net().alive(in->index_of(host))) return;
    in->spawn<actors::data_shard>(host, config, source, made);
    *serves = true;
  };
  if (options.node)
    in->clock().at(in->clock().now() + shard_start_delay(host.utc_ns()), std::move(serve));
  else
    serve();
  std::lock_guard guard(watching);
  names_of_peers.insert_or_assign(host.id(), shard_hosts(what)[number]);
  shard.ledger = std::move(made);
  shard.role = std::move(role);
  shard.serves = serves;
}

actors::shard_finder runner::state::find_shards(const actors::host& by) {
  const auto names = std::make_shared<const std::vector<std::string>>(shard_hosts(what));
  const auto number = [names](const std::string& name) -> std::optional<std::size_t> {
    const auto found = std::find(names->begin(), names->end(), name);
    if (found == names->end()) return std::nullopt;
    return static_cast<std::size_t>(found - names->begin());
  };
  return [this, &by, number](const caf::strong_actor_ptr& address,
                             std::string_view certificate) -> std::optional<std::size_t> {
    const auto host = in->net().host_of(caf::actor_cast<caf::actor>(address));
    if (host == netem::no_host) return std::nullopt;
    if (const auto name = in->net().name_of(host); !name.empty()) return number(name);
    // This process has had no link to that host. Without keys, a name would prove nothing.
    if (!options.node || !options.node->admits) return 0;
    netem::wire::certified_member who;
    std::string detail;
    if (certificate.empty() ||
        options.node->admits->check(std::string{certificate}, by.utc_ns(), who, detail) !=
            netem::wire::refusal::none ||
        actors::member_of(actors::key_from(who.identity)) != by.member_of(address))
      return std::nullopt;
    return number(who.name);
  };
}

std::shared_ptr<actors::conduct> runner::state::conduct_of(const host_spec& spec,
                                                           actors::host& on) {
  const auto shared = [&](const std::string& group) {
    auto& found = colluding[group];
    if (!found) found = std::make_shared<actors::collusion>();
    return found;
  };
  if (is_attack(spec.conduct)) {
    auto how = spec.conduct;
    how.with = shared(spec.group);
    return actors::make_conduct(how, on);
  }
  std::vector<std::shared_ptr<actors::collusion>> watchers;
  for (const auto& group : what.peers)
    if (is_attack(group.conduct) && group.conduct.knows == actors::attacker_knowledge::everybody)
      watchers.push_back(shared(group.name));
  if (!watchers.empty() && spec.conduct.kind == "honest")
    return std::make_shared<actors::watched_host>(on, std::move(watchers));
  return actors::make_conduct(spec.conduct, on);
}

void runner::state::start_peer(netem::machine_index machine) {
  if (draining) return;
  const auto& spec = hosts[peer_of.at(machine)];
  auto& host = in->boot(machine);
  {
    std::lock_guard guard(watching);
    observers->on_host_started(stamp(in->clock().now()), host.id(), spec.name, machine,
                               in->net().incarnation(in->index_of(host)));
  }
  // The process of a real host has needed that time already.
  if (options.node || spec.boot_time == duration{}) return start_actors(machine, host);
  in->clock().at(in->clock().now() + spec.boot_time, [this, machine, &host] {
    if (!draining && in->net().alive(in->index_of(host))) start_actors(machine, host);
  });
}

void runner::state::start_actors(netem::machine_index machine, actors::host& host) {
  const auto& spec = hosts[peer_of.at(machine)];
  const auto conduct = options.conduct.empty() ? conduct_of(spec, host)
                                               : actors::make_conduct(options.conduct, host);
  if (conduct->alters_messages()) in->alter_messages(host, conduct);
  auto config = peer_config_of(what, spec, conduct);
  if (!checkpoint_folder.empty()) {
    config.checkpoint_every = what.training.checkpoint_every;
    config.on_checkpoint = [this](const actors::state_ptr& state, std::uint64_t data_from) {
      keep_checkpoint(state, data_from);
    };
  }
  config.find_shard = find_shards(host);
  config.corpus = corpus;
  auto node = start_node(host, conduct);
  config.codecs = codecs;
  const auto& group = group_of(spec);
  const auto address = in->spawn_by(host, [&](caf::actor_system& system) {
    return spec.role->spawn(
        {system, host, what, group, group.role.options, config, pool, std::move(node)});
  });
  {
    std::lock_guard guard(watching);
    if (address) peers[machine] = address;
  }
  // A probe in another thread may have killed the host before this entry existed.
  if (in->net().alive(in->index_of(host))) return;
  std::lock_guard guard(watching);
  if (auto found = peers.find(machine); found != peers.end() && found->second == address)
    peers.erase(found);
}

} // namespace shoal::scenarios
