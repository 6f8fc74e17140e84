#include "scenarios/stage/stage.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <tuple>
#include <utility>

#include <caf/send.hpp>
#include <fmt/format.h>

#include "actors/data/data_shard.hpp"
#include "actors/data/ledger_file.hpp"
#include "actors/data/rounds_file.hpp"
#include "actors/dht/dht_node.hpp"
#include "actors/rare.hpp"
#include "actors/training/auxiliary_peer.hpp"
#include "actors/training/delayed_peer.hpp"
#include "actors/training/moshpit_peer.hpp"
#include "actors/training/peer.hpp"
#include "kernels/base/digest.hpp"
#include "scenarios/compare/provenance.hpp"
#include "scenarios/compare/version.hpp"
#include "scenarios/observe/node_report.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/stage/churn.hpp"
#include "scenarios/stage/faults.hpp"
#include "scenarios/stage/network.hpp"
#include "scenarios/stage/over_time.hpp"
#include "scenarios/stage/workloads.hpp"
#include "scenarios/stage/world.hpp"

namespace shoal::scenarios {

namespace {

using wall_clock = std::chrono::steady_clock;

double seconds_since(wall_clock::time_point start) {
  return std::chrono::duration<double>(wall_clock::now() - start).count();
}

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

bool has_nat(const scenario& what) {
  return std::any_of(what.peers.begin(), what.peers.end(),
                     [](const peer_group& group) { return group.nat != netem::nat_class::open; });
}

actors::reachability_config reachability_of(const scenario& what) {
  actors::reachability_config out;
  out.enabled = has_nat(what);
  // In a swarm that is quick about everything else, waiting for who does not answer is quicker, too.
  out.patience = std::min(out.patience, 2 * what.training.max_refresh);
  return out;
}

bool cuts_off(fault_kind what) {
  return what == fault_kind::partition || what == fault_kind::blackhole || what == fault_kind::swizzle_clog || what == fault_kind::pause;
}

bool averages_parameters(const scenario& what) { return what.training.method != training_method::synchronous; }

/// How long a peer may believe to be in sync while others have gone on: it hears of them after a round that it cannot join, from records
/// that it reads every so often.
duration staleness_allowed(const scenario& what) {
  const auto until_heard = std::max(scenarios::invariant_options{}.staleness_allowed, what.averaging.round_timeout + 6 * what.training.max_refresh);
  return until_heard + job_before_following(what);
}

/// Steps that one machine makes with what a swarm at `epoch` has used.
std::uint64_t steps_of_machine(const scenario& what, std::uint64_t epoch) {
  if (what.training.method == training_method::moshpit) return epoch * what.training.local_steps;
  return what.training.overlap == overlap_mode::none ? epoch : epoch - 1;  // the first epoch fills the pipeline
}

bool has_takeovers(const scenario& what) {
  return what.data.replicas > 1 || std::any_of(what.faults.begin(), what.faults.end(), [](const fault& f) {
           return f.kind == fault_kind::restart && f.select.starts_with(shard_prefix);
         });
}

std::uint64_t count_of(const scenario& what) {
  std::uint64_t out = 0;
  for (const auto& group : what.peers) out += group.count;
  return out;
}

kernels::grid grid_of(const scenario& what) {
  if (what.training.method == training_method::local_updates) return {static_cast<std::uint32_t>(what.averaging.group_size), 1};
  if (const auto given = kernels::parse_grid(what.averaging.grid)) return *given;
  return kernels::square_grid(count_of(what));
}

actors::peer_config peer_config_of(const scenario& from, const host_spec& host, actors::mutant mutant) {
  const auto& device = from.devices.at(host.device);
  actors::peer_config out;
  out.target_batch = from.training.target_batch;
  out.micro_batch = from.training.micro_batch;
  out.epochs = from.training.epochs;
  out.prefetch_samples = static_cast<std::uint32_t>(from.data.prefetch_samples);
  out.min_refresh = from.training.min_refresh;
  out.max_refresh = from.training.max_refresh;
  out.record_lifetime = from.training.record_lifetime;
  out.max_uploads = from.training.max_uploads;
  out.overlap = static_cast<actors::overlap>(from.training.overlap);
  out.device = {device.samples_per_second, device.jitter, device.step_time, device.offload};
  auto& averaging = out.averaging;
  averaging.group_size = static_cast<std::uint32_t>(from.averaging.group_size);
  averaging.min_group_size = static_cast<std::uint32_t>(from.averaging.min_group_size);
  averaging.matchmaking_time = from.averaging.matchmaking_time;
  averaging.round_timeout = from.averaging.round_timeout;
  averaging.sender_timeout = from.averaging.sender_timeout;
  averaging.chunk_bytes = from.averaging.chunk_size.bytes;
  averaging.split = static_cast<actors::part_split>(from.averaging.split);
  averaging.mutant = mutant;
  out.local_steps = from.training.local_steps;
  out.local_batch = from.training.method == training_method::local_updates;
  out.max_staleness = from.training.max_staleness;
  out.average_optimizer = from.training.average_optimizer;
  out.grid = grid_of(from);
  // Of large chunks so few fit in what a line may have under way that it would stand still between them.
  out.fetch.chunk_bytes = std::min<std::uint64_t>(from.averaging.chunk_size.bytes, 256 * 1024);
  out.reachability = reachability_of(from);
  return out;
}

/// A source whose first samples were used in an earlier run.
class later_source final : public actors::sample_source {
 public:
  later_source(std::shared_ptr<const actors::sample_source> all, std::uint64_t first) : all_(std::move(all)), first_(first) {}
  std::uint32_t sample_bytes() const override { return all_->sample_bytes(); }
  void read(std::uint64_t index, std::span<std::byte> out) const override { all_->read(first_ + index, out); }
  bool hollow() const override { return all_->hollow(); }

 private:
  std::shared_ptr<const actors::sample_source> all_;
  std::uint64_t first_;
};

constexpr const char* checkpoints = "checkpoints";

}  // namespace

duration job_before_following(const scenario& what) {
  if (what.training.overlap == overlap_mode::none && !averages_parameters(what)) return {};
  double job = 0;
  for (const auto& [name, device] : what.devices)
    job = std::max(job, static_cast<double>(what.training.micro_batch) / device.samples_per_second * (1 + 4 * device.jitter) + to_seconds(device.step_time));
  return from_seconds(job);
}

struct stage::state {
  scenario what;
  stage_options options;
  std::unique_ptr<prepared_workload> work;
  std::shared_ptr<const actors::workload> averaged;     // what peers compute: work->work(), or PowerSGD around it
  std::optional<training_start> start;                  // instead of a fresh model
  std::vector<std::optional<churned_host>> comings;     // by host
  std::vector<host_spec> hosts;
  node_role role;                                       // what this process is; with options.node

  // While it runs. On the wall clock actors of several threads observe at once: `watching` guards the
  // observers and what stands between here and `started`. It is the last lock that is taken: under
  // it nobody calls the world.
  mutable std::recursive_mutex watching;
  duration last_event{};                                 // observers' time never goes back
  bool over = false;                                     // what the wire still has to say is too late
  std::map<netem::host_index, rng> rare_draws;
  std::unique_ptr<run_observers> observers;
  actors::rounds_recorder rounds;
  node_diary diary;                                      // with options.node
  std::shared_ptr<actors::state_pool> pool;
  actors::averaging_codecs codecs;
  /// A replica of the data shard, its latest incarnation.
  struct shard_unit {
    netem::machine_index machine = 0;
    std::shared_ptr<actors::sample_ledger> ledger;
    std::shared_ptr<std::atomic<actors::replica_role>> role;
  };
  std::vector<shard_unit> shards;
  std::uint64_t shards_started = 0;                      // and so the next one's territory
  std::unique_ptr<churn_engine> churn;
  std::unique_ptr<world> in;
  std::unique_ptr<effects> on_hosts;
  std::unique_ptr<fault_engine> faults;
  std::vector<line_plan> line_plans;
  std::unique_ptr<line_engine> lines;
  std::vector<netem::machine_index> machines;            // of the peers
  std::map<netem::machine_index, std::size_t> peer_of;   // index into hosts
  std::map<netem::machine_index, caf::actor> peers;      // of those that run
  std::map<netem::machine_index, caf::actor> nodes;      // of the DHT, on those and on the shard's host
  std::shared_ptr<actors::signature_memo> signatures;
  std::map<actors::peer_id, std::uint64_t> open_rounds;  // contributed and not ended
  std::set<actors::peer_id> dead;                        // wall clock only
  std::set<std::string> unreached;                       // addresses that could not be dialled since they last could
  std::set<std::string> linked;                          // hosts that we had links with and that have not left
  std::uint64_t rounds_asked = 0;
  std::filesystem::path checkpoint_folder;               // empty: none are kept
  std::set<std::uint64_t> checkpoint_epochs;             // that have one
  std::optional<failure> checkpoint_error;
  std::uint64_t held_out_next = 0;                       // epoch of the next held-out loss; 0: none
  bool held_out_due = false;
  std::atomic<bool> goal_reached{false}, draining{false}, told_to_leave{false};
  duration goal_time{};
  std::optional<duration> deserted_at;                   // when the last of `linked` left
  duration deserted_for() const { return 5 * what.network.detection_time; }
  wall_clock::time_point started = wall_clock::now();
  std::int64_t started_utc_ns = 0;                       // when the world's time began
  contribution_total contributed;                        // of a node
  std::string contribution;                              // its signed word, with keys

  ~state() {
    // Addresses do not outlive their world.
    peers.clear();
    nodes.clear();
    in.reset();
  }

  bool simulated() const { return what.world == "sim"; }
  /// Whether this process runs that host.
  bool runs_peer(std::size_t host) const { return !options.node || role.peer == host; }
  bool runs_shard(std::size_t shard) const { return !options.node || role.shard == shard; }
  real_network network_between_hosts();
  void meet(netem::host_index mine, const netem::wire::neighbour& other);
  duration stamp(duration time) { return last_event = std::max(last_event, time); }
  void build();
  void start_peer(netem::machine_index machine);
  void start_shard(shard_unit& shard);
  void start_host(netem::machine_index machine);
  /// Whose ledger counts: that of the first primary; without one, of the first that had it.
  const actors::sample_ledger& ledger() const;
  std::size_t primaries() const;
  caf::actor start_node(actors::host& on);
  bool takes_rare(netem::host_index host, std::string_view branch);
  void on_event(const netem::delivered_event& event);
  void on_observation(const actors::host& from, const actors::observation& seen);
  void keep_checkpoint(const actors::state_ptr& state, std::uint64_t data_from);
  /// Where the data of a later run begins: in indices of the very first one.
  std::uint64_t data_before() const { return start ? start->data_from : 0; }
  actors::model_state first_state() const { return start ? start->state : averaged->initial(); }
  void drain();
  bool quiet() const;
  void measure_held_out();
  duration run_world(bool& interrupted);
  leak_facts leaks() const;
  std::string run_yaml(bool interrupted) const;
  result<void> write(const run_directory& to, const summary& result, bool interrupted) const;
  live_status status(const char* doing);
  /// Where the run ends; 0: training has no end.
  std::uint64_t goal_epoch() const {
    const auto planned = what.training.epochs, limit = options.end_at_epoch;
    return planned == 0 ? limit : limit == 0 ? planned : std::min(planned, limit);
  }
  std::array<std::uint64_t, 4> bytes_sent() const;       // data, averaging, state, control
  void on_contribution(const run_directory* to, const std::string& scenario_hash, const swarm_round& round, std::uint64_t samples);
  node_report report();
  netem::wire::visit_answer answer(const netem::wire::visitor& who, const std::string& question);
};

stage::stage(std::unique_ptr<state> s) : state_(std::move(s)) {}
stage::~stage() = default;

result<std::unique_ptr<stage>> stage::prepare(scenario what, stage_options options) {
  auto s = std::make_unique<state>();
  if (what.study) return failure{"a study of averaging is no training run"};
  if (what.world == "cluster" && !options.node)
    return failure{"world 'cluster' is run by one process for each host; see shoal node --help"};
  if (what.world != "sim" && what.world != "emulate" && what.world != "loopback" && what.world != "cluster")
    return failure{fmt::format("there is no world '{}'; use --world sim, emulate or loopback", what.world)};
  if (!options.out.empty())
    if (auto free = run_directory::check_free(options.out, options.force); !free) return failure{free.error()};
  auto of_work = what;
  // What its baseline is given in a step: what the whole swarm computes in a local step of each.
  if (what.training.method == training_method::moshpit) of_work.training.target_batch = count_of(what) * what.training.micro_batch;
  s->hosts = expand_hosts(what);
  if (options.node) {
    auto role = role_of(what, *options.node, s->hosts);
    if (!role) return failure{role.error()};
    s->role = *role;
    // Before anything is written.
    if (options.node->listen)
      if (auto free = netem::wire::check_can_listen(*options.node->listen); !free) return failure{free.error()};
    options.baseline = false;
    what.expect.clear();                                 // of whole swarms
  }
  auto work = prepare_workload(of_work, !options.sizes_only && (!options.node || s->role.shard.has_value()));
  if (!work) return failure{work.error()};
  if (options.sizes_only) {
    of_work.workload.parameters = (*work)->work()->value_count();
    of_work.workload.sample_size = {(*work)->work()->sample_bytes()};
    of_work.workload.rows = 1;
    of_work.workload.kind = workload_kind::timing;
    work = prepare_workload(of_work);
    if (!work) return failure{work.error()};
  }
  auto averaged = averaged_workload(what, (*work)->work());
  if (!averaged) return failure{averaged.error()};
  auto start = load_training_start(what, **averaged);
  if (!start) return failure{start.error()};
  auto comings = plan_churn(what, s->hosts);
  if (!comings) return failure{comings.error()};
  auto lines = plan_lines(what);
  if (!lines) return failure{lines.error()};
  auto cores = std::max(1u, std::thread::hardware_concurrency());
  // On the wall clock one core is for the actors.
  if (options.threads == 0) options.threads = what.world == "sim" ? cores : std::max(1u, cores - 1);
  s->what = std::move(what);
  s->options = std::move(options);
  s->work = std::move(*work);
  s->averaged = std::move(*averaged);
  s->start = std::move(*start);
  s->comings = std::move(*comings);
  s->line_plans = std::move(*lines);
  return std::unique_ptr<stage>(new stage(std::move(s)));
}

// -- building -------------------------------------------------------------------------------------

void stage::state::build() {
  world_options options_of_world;
  if (!simulated()) options_of_world.mode = netem::time_mode::wall_clock;
  options_of_world.seed = what.seed;
  options_of_world.detection_time = what.network.detection_time;
  // Sizes alone are not worth waking a thread for.
  options_of_world.compute_threads = simulated() && work->work()->hollow() ? 0 : options.threads;
  options_of_world.prepare_compute_thread = prepare_compute_thread;
  options_of_world.model = what.network.model;
  options_of_world.tcp = tcp_of(what.network.tcp);
  options_of_world.hole_punching = what.network.hole_punching;
  options_of_world.on_event = [this](const netem::delivered_event& event) { on_event(event); };
  if ((!options.out.empty() || options.listener != nullptr) && what.record.transfers > 0)
    options_of_world.on_transfer = [this](const netem::transfer_record& transfer) {
      std::lock_guard guard(watching);
      if (!over) observers->on_transfer(transfer);
    };
  if (what.world == "loopback" || options.node) options_of_world.real = network_between_hosts();
  in = std::make_unique<world>(std::move(options_of_world));
  in->on_observation = [this](const actors::host& from, const actors::observation& seen) { on_observation(from, seen); };
  in->on_probe = [this](netem::host_index host, std::string_view point) {
    {
      std::lock_guard guard(watching);
      if (!over) observers->on_point(point);
    }
    faults->reached(host, point);
  };

  if (what.rare_branches > 0) in->takes_rare = [this](netem::host_index host, std::string_view branch) { return takes_rare(host, branch); };

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
    shards.push_back({network.shards[i], nullptr, nullptr});
    targets.push_back({network.shards[i], shard_names[i], network.shard_regions[i], false});
    on_hosts->add_line(network.shards[i], {what.data.up, what.data.down, {}});
  }
  faults = std::make_unique<fault_engine>(
      // Those of a cluster are done by the world outside.
      *in, *on_hosts, options.node ? std::vector<fault>{} : what.faults, std::move(targets), what.seed,
      fault_engine::hooks{[this](netem::machine_index machine) { start_host(machine); },
                          [this](const fault_note& note) {
                            const auto now = in->clock().now();
                            std::lock_guard guard(watching);
                            observers->on_fault(stamp(now), note.fault, action_name(note.kind), note.begins, cuts_off(note.kind), note.hosts);
                          }});

  for (auto& shard : shards) start_shard(shard);
  pool = std::make_shared<actors::state_pool>(averaged, options.share_states,
                                              start ? std::optional(start->state) : std::nullopt);
  codecs = codecs_of(what.averaging, *averaged);
  churn = std::make_unique<churn_engine>(churn_engine::hooks{
      [this](duration when, std::function<void()> action) { in->clock().at(when, std::move(action)); },
      [this](netem::machine_index machine) { return in->net().host_on(machine) != netem::no_host; },
      [this](netem::machine_index machine) { start_peer(machine); },
      [this](netem::machine_index machine, fault_scope ending) {
        in->net().kill(in->net().host_on(machine), ending == fault_scope::machine ? netem::kill_scope::machine
                                                                                  : netem::kill_scope::process);
      }});
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (options.node) {
      if (runs_peer(i)) in->clock().at({}, [this, machine = machines[i]] { start_peer(machine); });
    } else if (comings[i])
      churn->add(machines[i], std::move(*comings[i]));
    else if (!hosts[i].absent)
      in->clock().at(hosts[i].start, [this, machine = machines[i]] {
        if (in->net().host_on(machine) == netem::no_host) start_peer(machine);
      });
  faults->schedule();
  std::vector<std::size_t> groups;
  for (const auto& host : hosts)
    groups.push_back(static_cast<std::size_t>(std::find_if(what.peers.begin(), what.peers.end(), [&](const peer_group& g) {
      return g.name == host.group;
    }) - what.peers.begin()));
  lines = std::make_unique<line_engine>(*in, *on_hosts, what, network, std::move(groups), std::move(line_plans));
  if (!options.node || options.node->shape) lines->schedule();
}

real_network stage::state::network_between_hosts() {
  real_network out;
  auto& wire = out.options;
  const auto peer_name = [](const netem::wire::neighbour& other) {
    return other.address.empty() ? other.name : fmt::format("{} ({})", other.name, other.address);
  };
  const auto say = [this](const std::string& line) {
    if (options.node && options.node->say) options.node->say(line);
  };
  wire.scenario = common_text(what);
  wire.difference = first_difference;
  wire.on_up = [this, say, peer_name](netem::host_index mine, const netem::wire::neighbour& other) {
    if (!other.service) say("linked with " + peer_name(other));
    {
      std::lock_guard guard(watching);
      linked.insert(other.name);
      deserted_at.reset();
      unreached.erase(other.address);
    }
    meet(mine, other);
  };
  wire.on_visit = [this](netem::host_index, const netem::wire::visitor& who, const std::string& question) { return answer(who, question); };
  wire.on_left = [this, say](netem::host_index, const std::string& name) {
    {
      std::lock_guard guard(watching);
      if (!options.node || !role.shard || what.training.epochs == 0 || linked.erase(name) == 0 || !linked.empty() || goal_reached) return;
      deserted_at = in->clock().now();
    }
    say(fmt::format("everybody has left; it ends in {} unless somebody comes", to_string(deserted_for())));
  };
  wire.on_list = [say](netem::host_index, const std::string& text) { say(text); };
  wire.on_down = [say, peer_name](netem::host_index, const netem::wire::neighbour& other, const std::string& why) {
    say(fmt::format("lost {}: {}", peer_name(other), why));
  };
  wire.on_refused = [this, say](netem::host_index, const std::string& where, netem::wire::refusal why, const std::string& text, bool fatal) {
    if (why == netem::wire::refusal::ourselves) return;
    if (why == netem::wire::refusal::none) {
      // It is tried again and again: the first time is news.
      std::lock_guard guard(watching);
      if (!unreached.insert(where).second) return;
    }
    const auto line = why == netem::wire::refusal::none ? fmt::format("no link with {}: {}", where, text)
                                                        : fmt::format("no link with {}: {}{}{}", where, name_of(why), text.empty() ? "" : ", ", text);
    say(line);
    if (fatal) in->breaks(line);
  };
  if (!options.node) {
    out.host = [](const std::string&) { return netem::wire::host_options{.name = {}, .listen = netem::wire::address{"127.0.0.1", 0}, .advertise = {}}; };
    return out;
  }
  const auto& node = *options.node;
  out.alone = true;
  out.shaped = node.shape;
  out.paced = node.pace;
  wire.server_credentials = node.server_credentials;
  wire.channel_credentials = node.channel_credentials;
  wire.admits = node.admits;
  const auto up = node.uplink.value_or(role.peer ? hosts[*role.peer].up : what.data.up);
  out.host = [&node, up](const std::string&) {
    return netem::wire::host_options{.name = {}, .listen = node.listen, .advertise = node.advertise, .uplink = node.shape ? 0 : up.bits_per_second,
                                      .relay_bytes = node.relay_bytes};
  };
  return out;
}

/// Nodes of the DHT learn of each other by the links between their hosts.
void stage::state::meet(netem::host_index mine, const netem::wire::neighbour& other) {
  if (!options.node || !other.service) return;
  caf::actor node;
  const auto machine = in->net().machine_of(mine);
  {
    std::lock_guard guard(watching);
    if (const auto found = nodes.find(machine); found != nodes.end()) node = found->second;
  }
  if (node) in->clock().as_host(mine, [&] { caf::anon_send(node, actors::introduced{other.service}); });
}

/// Its bootstraps are a few of those that run just now and can be dialled, as who writes them down would choose. Any of them may
/// be dead a moment later.
caf::actor stage::state::start_node(actors::host& on) {
  constexpr std::size_t most_bootstraps = 4;
  actors::dht_config config;
  config.memo = signatures;
  config.honours_expired = options.mutant == actors::mutant::expired_record;
  // Who says something once a minute need not look up every time where to.
  config.replicas_fresh = std::max(config.replicas_fresh, 2 * what.training.max_refresh);
  const auto machine = in->net().machine_of(in->index_of(on));
  // With address translation about, a peer's host serves once the peer knows that others reach it. The shard's does.
  config.serves = !has_nat(what) || !peer_of.contains(machine);
  const auto host = in->index_of(on);
  if (options.node) {
    config.serves = options.node->listen.has_value();
    for (const auto& other : in->wire()->neighbours(host))
      if (other.service) config.bootstraps.push_back(other.service);
  } else {
    std::vector<netem::machine_index> written_down;
    {
      std::lock_guard guard(watching);
      for (const auto& [other, node] : nodes) {
        const auto peer = peer_of.find(other);
        const bool open = peer == peer_of.end() || hosts[peer->second].nat == netem::nat_class::open;
        if (open && written_down.size() < most_bootstraps) written_down.push_back(other);
      }
    }
    // A process that is started again has its machine's address.
    config.bootstraps_now = [this, written_down] {
      std::vector<caf::actor> out;
      std::lock_guard guard(watching);
      for (const auto other : written_down)
        if (const auto found = nodes.find(other); found != nodes.end()) out.push_back(found->second);
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
    for (const auto& other : in->wire()->neighbours(host)) meet(host, other);
    for (const auto& where : options.node->join) in->wire()->join(host, where);
  }
  if (in->net().alive(host)) return node;
  std::lock_guard guard(watching);
  if (auto found = nodes.find(machine); found != nodes.end() && found->second == node) nodes.erase(found);
  return node;
}

void stage::state::start_host(netem::machine_index machine) {
  for (auto& shard : shards)
    if (shard.machine == machine) return start_shard(shard);
  start_peer(machine);
}

void stage::state::start_shard(shard_unit& shard) {
  if (draining) return;
  auto& host = in->boot(shard.machine);
  actors::data_shard_config config;
  config.lease_time = what.data.lease_time;
  config.dht = start_node(host);
  config.dial_patience = reachability_of(what).patience / 2;
  auto& replication = config.replication;
  replication.replicas = static_cast<unsigned>(what.data.replicas);
  replication.detection_time = what.network.detection_time;
  replication.beat = std::min(replication.beat, what.network.detection_time / 4);
  replication.seek_time = 2 * what.network.detection_time;
  replication.forgets_commits = options.mutant == actors::mutant::forgotten_commit;
  const auto territory = options.node ? territory_of(host.utc_ns(), *this->role.shard) : shards_started++;
  auto made = std::make_shared<actors::sample_ledger>(what.data.lease_time, territory);
  auto role = std::make_shared<std::atomic<actors::replica_role>>(what.data.replicas == 1 ? actors::replica_role::primary
                                                                                          : actors::replica_role::seeking);
  config.role = role;
  in->spawn<actors::data_shard>(host, config, start ? std::make_shared<later_source>(work->source(), start->data_from) : work->source(),
                                made);
  std::lock_guard guard(watching);
  shard.ledger = std::move(made);
  shard.role = std::move(role);
}

std::size_t stage::state::primaries() const {
  auto all = [this] {
    std::lock_guard guard(watching);
    return shards;
  }();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [this](const shard_unit& shard) {
    return in->net().host_on(shard.machine) != netem::no_host && *shard.role == actors::replica_role::primary;
  }));
}

const actors::sample_ledger& stage::state::ledger() const {
  const auto rank = [this](const shard_unit& shard) {
    const bool dead = in->net().host_on(shard.machine) == netem::no_host;
    const auto role = shard.role->load();
    return std::tuple{dead, role != actors::replica_role::primary, role == actors::replica_role::seeking, shard.ledger->territory()};
  };
  return *std::min_element(shards.begin(), shards.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); })->ledger;
}

void stage::state::start_peer(netem::machine_index machine) {
  if (draining) return;
  const auto& spec = hosts[peer_of.at(machine)];
  auto& host = in->boot(machine);
  {
    std::lock_guard guard(watching);
    observers->on_host_started(stamp(in->clock().now()), host.id(), spec.name);
  }
  auto config = peer_config_of(what, spec, options.mutant);
  if (!checkpoint_folder.empty()) {
    config.checkpoint_every = what.training.checkpoint_every;
    config.on_checkpoint = [this](const actors::state_ptr& state, std::uint64_t data_from) { keep_checkpoint(state, data_from); };
  }
  auto node = start_node(host);
  config.codecs = codecs;
  const auto address = [&] {
    if (averages_parameters(what)) return in->spawn<actors::moshpit_peer>(host, std::move(config), pool, std::move(node));
    if (spec.role == peer_role::auxiliary) return in->spawn<actors::auxiliary_peer>(host, std::move(config), pool, std::move(node));
    if (what.training.overlap != overlap_mode::none) return in->spawn<actors::delayed_peer>(host, std::move(config), pool, std::move(node));
    return in->spawn<actors::peer>(host, std::move(config), pool, std::move(node));
  }();
  {
    std::lock_guard guard(watching);
    if (address) peers[machine] = address;
  }
  // A probe may have killed it meanwhile, in another thread, and found nothing to forget.
  if (in->net().alive(in->index_of(host))) return;
  std::lock_guard guard(watching);
  if (auto found = peers.find(machine); found != peers.end() && found->second == address) peers.erase(found);
}

// -- watching -------------------------------------------------------------------------------------

/// Half of the branches, the same ones at each host (swarm testing), and each host has draws of its own.
bool stage::state::takes_rare(netem::host_index host, std::string_view branch) {
  const auto& all = actors::rare::all;
  const auto number = static_cast<std::uint64_t>(std::find(all.begin(), all.end(), branch) - all.begin());
  if (stream(what.seed, "rare.branches", number).uniform() < 0.5) return false;
  std::lock_guard guard(watching);
  if (over || rare_draws.try_emplace(host, stream(what.seed, "rare", host)).first->second.uniform() >= what.rare_branches) return false;
  if (options.on_rare) options.on_rare(branch);
  return true;
}

void stage::state::on_event(const netem::delivered_event& event) {
  auto killed = event.kind == netem::event_kind::host_killed;
  auto machine = killed ? in->net().machine_of(event.to.host) : 0;
  auto id = killed ? in->peer_id_of(event.to.host) : 0;
  std::lock_guard guard(watching);
  if (over) return;
  if (killed && !simulated()) dead.insert(id);
  auto in_order = event;
  in_order.time = stamp(event.time);
  observers->on_event(in_order);
  if (killed) nodes.erase(machine);
  if (!killed || !peer_of.contains(machine)) return;
  auto by = in->net().died_by(event.to.host);
  observers->on_host_killed(in_order.time, id, by == netem::kill_scope::machine ? "machine_killed" : "process_killed");
  open_rounds.erase(id);
  peers.erase(machine);
}

/// Whoever gets to the epoch first writes it down: all who get there by steps hold the same bits, or, of parameters that are averaged in
/// groups, equally good ones.
void stage::state::keep_checkpoint(const actors::state_ptr& state, std::uint64_t data_from) {
  std::lock_guard guard(watching);
  if (checkpoint_error || !checkpoint_epochs.insert(state->epoch).second) return;
  // In groups, others may have used samples that come later than those that one peer hears of.
  if (averages_parameters(what)) data_from += count_of(what) * what.data.prefetch_samples;
  const auto name = fmt::format("epoch-{}.ckpt", state->epoch);
  if (auto saved = work->save(*state, data_before() + data_from, (checkpoint_folder / name).string()); !saved)
    checkpoint_error = failure{saved.error()};
}

void stage::state::on_observation(const actors::host& from, const actors::observation& seen) {
  auto machine = in->net().machine_of(in->index_of(from));
  auto now = in->clock().now();
  std::lock_guard guard(watching);
  // Killed by another thread while it was about to say this: it happened nowhere.
  if (over || dead.contains(from.id())) return;
  observers->on_observation(stamp(now), from.id(), machine, from.name(), seen);
  if (options.node) diary.observe(now, seen);
  rounds.observe(from.id(), seen);
  if (options.on_observation) options.on_observation(from, seen);
  if (std::holds_alternative<actors::contributed>(seen)) {
    ++rounds_asked;
    ++open_rounds[from.id()];
  } else if (auto* ended = std::get_if<actors::round_ended>(&seen)) {
    if (!ended->group.is_zero()) --open_rounds[from.id()];
  } else if (const auto* moved = std::get_if<actors::samples_moved>(&seen)) {
    // A shard's process sees no steps: the last round's commit is as good.
    if (!options.node || moved->to != actors::sample_state::committed || what.training.epochs == 0 ||
        moved->epoch + 1 < what.training.epochs || goal_reached)
      return;
    goal_time = now;
    goal_reached = true;
  } else if (auto* step = std::get_if<actors::stepped>(&seen)) {
    if (held_out_next > 0 && step->epoch >= held_out_next) {
      auto every = what.record.held_out_every;
      held_out_next = (step->epoch / every + 1) * every;
      held_out_due = true;
    }
    if (goal_epoch() == 0 || step->epoch < goal_epoch() || goal_reached) return;
    goal_time = now;
    goal_reached = true;
    in->clock().at(now, [this] { drain(); });
  } else if (const auto* took = std::get_if<actors::adopted>(&seen)) {
    // A process of a cluster that was late for the last step has its result, and nobody will step with it.
    if (!options.node || what.training.epochs == 0 || took->epoch < what.training.epochs || goal_reached) return;
    goal_time = now;
    goal_reached = true;
    in->clock().at(now, [this] { drain(); });
  }
}

live_status stage::state::status(const char* doing) {
  std::lock_guard guard(watching);
  return {observers->progress(), observers->rounds(), seconds_since(started), goal_epoch(),
          options.until.value_or(what.stop_time), doing, simulated()};
}

std::array<std::uint64_t, 4> stage::state::bytes_sent() const {
  std::array<std::uint64_t, 4> out{};
  if (!in) return out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = in->net().traffic_bytes(i);
  return out;
}

/// What is kept and shown under this node's name is signed at once: a process that is killed has said it.
void stage::state::on_contribution(const run_directory* to, const std::string& scenario_hash, const swarm_round& round, std::uint64_t samples) {
  ++contributed.rounds;
  contributed.samples += samples;
  contributed.epoch = round.epoch;
  const auto text = contribution_text(contributed, options.node->name, scenario_hash, started_utc_ns, started_utc_ns + round.ended.count());
  contribution = options.node->sign(contribution_kind, text);
  // That the disk is full is said of the files that the run cannot do without.
  if (to != nullptr) static_cast<void>(to->write(contribution_file, contribution));
}

// Asked by an operator's command, on threads of the wire's.

node_report stage::state::report() {
  node_report out;
  out.name = options.node->name;
  out.scenario = what.name;
  out.version = version();
  out.leaving = draining || told_to_leave;
  out.epochs_planned = what.training.epochs;
  const auto now = in->clock().now();
  const auto machine = role.peer ? machines[*role.peer] : shards.front().machine;
  const auto host = in->net().host_on(machine);
  if (host != netem::no_host)
    for (const auto& other : in->wire()->neighbours(host)) {
      auto& here = out.neighbours.emplace_back();
      here.name = other.name;
      here.address = other.address;
      here.relay = other.relay;
      if (other.round_trip > duration{}) here.round_trip_seconds = to_seconds(other.round_trip);
      here.sends_bits_per_second = other.sends;
      here.receives_bits_per_second = other.receives;
    }
  std::lock_guard guard(watching);
  diary.fill(now, out);
  out.contribution = contribution;
  const auto progress = observers->progress();
  if (!work->work()->hollow()) {
    out.train_loss = progress.train_loss;
    out.held_out_loss = progress.held_out_loss;
  }
  out.violations = progress.violations;
  const auto& counts = observers->rounds();
  for (std::size_t i = 0; i < counts.by_outcome.size(); ++i) out.rounds_by_outcome[std::string(actors::outcome_names[i])] = counts.by_outcome[i];
  out.rounds_by_reason = counts.by_reason;
  out.role = !role.peer ? "shard" : hosts[*role.peer].role == peer_role::auxiliary ? "auxiliary" : "trainer";
  if (!role.peer) out.phase = shards.front().role && *shards.front().role == actors::replica_role::primary ? "serving" : "following";
  for (const auto bytes : bytes_sent()) out.bytes_sent += bytes;
  return out;
}

netem::wire::visit_answer stage::state::answer(const netem::wire::visitor& who, const std::string& question) {
  if (question == "status") return {true, to_json(report())};
  if (question != "drain") return {false, "it does not know this question"};
  const auto say = [this](const std::string& line) {
    if (options.node->say) options.node->say(line);
  };
  const auto whose = who.name.empty() ? std::string("somebody") : who.name;
  if (!who.operates) {
    say(whose + " told it to leave, and is no operator");
    return {false, whose + " is no operator: 'shoal keys admit NAME --operator' makes one"};
  }
  if (!told_to_leave.exchange(true)) say(whose + " told it to leave");
  return {true, options.node->name};
}

// -- running --------------------------------------------------------------------------------------

void stage::state::drain() {
  if (draining.exchange(true)) return;
  churn->stop();
  faults->end();
  lines->stop();
  auto alive = [this] {
    std::lock_guard guard(watching);
    return peers;
  }();
  for (auto& [machine, peer] : alive) caf::anon_send(peer, actors::tick{actors::peer::drain, 0});
}

bool stage::state::quiet() const {
  // Each living peer is down to itself, its device and its DHT node, and nothing is under way.
  for (auto machine : machines) {
    auto host = in->net().host_on(machine);
    if (host != netem::no_host && in->net().live_actors(host) > 3) return false;
  }
  if (in->net().active_flows() > 0) return false;
  // Two primaries that were cut off from each other have to meet, and one that takes over to be there.
  if (shards.empty()) return true;
  const bool some = std::any_of(shards.begin(), shards.end(), [this](const shard_unit& s) { return in->net().host_on(s.machine) != netem::no_host; });
  return shards.size() == 1 || !some || primaries() == 1;
}

/// Between two slices, on this thread: in sim at a time that is the same in each run, in emulate away
/// from the actors' threads. Neither virtual time nor history notices.
void stage::state::measure_held_out() {
  {
    std::lock_guard guard(watching);
    if (!std::exchange(held_out_due, false)) return;
  }
  auto loss = work->held_out_loss(*pool->best());
  std::lock_guard guard(watching);
  observers->on_held_out_loss(stamp(in->clock().now()), loss);
}

duration stage::state::run_world(bool& interrupted) {
  auto limit = std::min(options.until.value_or(what.stop_time), what.stop_time);
  auto last_status = wall_clock::now() - std::chrono::hours(1);
  auto look = [&](const char* doing) {
    if (wall_clock::now() - last_status < std::chrono::milliseconds(200)) return;
    last_status = wall_clock::now();
    if (options.on_status) options.on_status(status(doing));
    if (told_to_leave || (options.interrupted && options.interrupted())) interrupted = true;
  };
  duration slice = std::chrono::milliseconds(100);
  auto written = [&] {
    std::lock_guard guard(watching);
    return !observers->write_error() && !checkpoint_error;
  };
  // A replica that only follows sees no step and no commit: when everybody has left, and nobody was only restarted, it is over.
  const auto end_if_deserted = [&] {
    std::lock_guard guard(watching);
    if (!deserted_at || goal_reached || in->clock().now() - *deserted_at < deserted_for()) return;
    goal_time = *deserted_at;
    goal_reached = true;
  };
  while (!goal_reached && !interrupted && in->clock().now() < limit && written() && !in->broken()) {
    in->clock().run(std::min(limit, in->clock().now() + slice));
    end_if_deserted();
    if (!goal_reached && !in->broken()) measure_held_out();
    look("running");
    if (options.node) {
      const auto now = in->clock().now();
      std::lock_guard guard(watching);
      observers->on_time(stamp(now));
    }
  }
  auto ended = goal_reached ? goal_time : in->clock().now();
  drain();
  // The others may be a step behind: they find us for as long as it takes to take us for dead twice.
  const auto stays = options.node && goal_reached ? in->clock().now() + 2 * what.network.detection_time : duration{};
  auto patience = in->clock().now() + 2 * what.averaging.round_timeout;
  do {
    in->clock().run(in->clock().now() + (simulated() ? duration(std::chrono::seconds(1)) : slice));
    look("ending");
  } while (((!quiet() && in->clock().now() < patience) || in->clock().now() < stays) && !in->broken());
  if (options.node) {
    const auto host = in->net().host_on(role.peer ? machines[*role.peer] : shards.front().machine);
    if (host != netem::no_host) {
      in->wire()->leave(host);
      const auto now = in->clock().now();
      const auto id = in->peer_id_of(host);
      std::lock_guard guard(watching);
      if (role.peer) observers->on_host_killed(stamp(now), id, "left");
    }
  }
  // From here on nobody serves the clock and no actor runs: what the observers know can be read. The wire's threads may still report.
  in->clock().settle();
  std::lock_guard guard(watching);
  over = true;
  return ended;
}

leak_facts stage::state::leaks() const {
  leak_facts out;
  const auto& net = in->net();
  out.bypassed = net.bypassed();
  out.messages = in->clock().messages_resumed();
  out.requests = rounds_asked;
  for (const auto& [peer, open] : open_rounds) out.requests_open += open;
  out.flows_of_dead_hosts = net.orphaned_flows();
  out.actors_alive = in->clock().live_actors();
  // A shard and its DHT node; a peer, its device and its DHT node.
  const auto alive = std::count_if(shards.begin(), shards.end(), [&](const shard_unit& s) { return net.host_on(s.machine) != netem::no_host; });
  out.actors_expected = 2 * static_cast<std::uint64_t>(alive) + 3 * peers.size();
  return out;
}

std::string stage::state::run_yaml(bool interrupted) const {
  provenance made_by{std::string(version()), work->data_digest(), options.until, interrupted, options.build};
  if (options.node) {
    const auto& node = *options.node;
    made_by.node = node.name;
    made_by.group = node.group;
    made_by.address = !node.advertise.empty() ? node.advertise : node.listen ? node.listen->text() : std::string{};
    for (const auto& other : node.join) made_by.joins += (made_by.joins.empty() ? "" : " ") + other.text();
    made_by.invitation = node.invitation;
    made_by.insecure = !node.server_credentials;
  }
  if (!simulated()) made_by.started_utc_ns = started_utc_ns;
  return to_yaml(what) + to_yaml(made_by);
}

result<void> stage::state::write(const run_directory& to, const summary& result, bool interrupted) const {
  if (auto done = to.write("run.yaml", run_yaml(interrupted)); !done) return done;
  if (!shards.empty())
    if (auto done = actors::write_ledger(to.file("ledger.csv").string(), ledger()); !done) return done;
  if (auto done = rounds.write(to.file("rounds.csv").string()); !done) return done;
  // Of a peer that knows no ledger: what it heard of. Whoever starts again from it says where the data go on, if that is not enough.
  if (auto best = pool->best(); best && !role.shard) {
    const auto used = shards.empty() ? best->samples : ledger().high_water();
    if (auto done = work->save(*best, data_before() + used, to.file("final.ckpt").string()); !done) return done;
  }
  return to.write("summary.json", to_json(result));
}

std::string stage::advice() const {
  const auto& s = *state_;
  const auto& work = *s.work->work();
  if (s.simulated() || work.hollow()) return {};
  // All devices at full rate against what the compute threads can do.
  auto batch = s.what.training.micro_batch;
  std::vector<std::byte> samples(batch * work.sample_bytes());
  for (std::uint64_t i = 0; i < batch; ++i)
    s.work->source()->read(i, std::span(samples).subspan(i * work.sample_bytes(), work.sample_bytes()));
  auto state = work.initial();
  std::vector<double> gradient(work.value_count());
  prepare_compute_thread();
  work.accumulate(state, samples, batch, gradient);  // warms up
  auto start = wall_clock::now();
  work.accumulate(state, samples, batch, gradient);
  auto possible = static_cast<double>(batch) / seconds_since(start) * s.options.threads;
  double wanted = 0;
  for (const auto& host : expand_hosts(s.what))
    if (host.role == peer_role::trainer) wanted += s.what.devices.at(host.device).samples_per_second;
  if (wanted <= 0.9 * possible) return {};
  std::string fits;
  for (const auto& [name, device] : s.what.devices)
    fits += fmt::format(" --set devices.{}.samples_per_second={:.2g}", name,
                        device.samples_per_second * 0.8 * possible / wanted);
  return fmt::format("the devices compute {:.0f} samples/s together, this machine about {:.0f}: steps will be late and "
                     "times will not be those of the scenario. This fits:{}",
                     wanted, possible, fits);
}

result<run_outcome> stage::run() {
  auto& s = *state_;
  std::optional<run_directory> directory;
  if (!s.options.out.empty()) {
    auto made = run_directory::create(s.options.out, s.options.force);
    if (!made) return failure{made.error()};
    directory = std::move(*made);
  }
  if (directory && s.what.training.checkpoint_every > 0 && !s.work->work()->hollow()) {
    auto made = directory->folder(checkpoints);
    if (!made) return failure{made.error()};
    s.checkpoint_folder = std::move(*made);
  }
  s.signatures = std::make_shared<actors::signature_memo>(
      16 * (s.hosts.size() + 1), s.simulated() ? actors::signature_memo::signing::stand_in : actors::signature_memo::signing::real);

  observer_options watching;
  watching.scenario = s.what.name;
  watching.seed = s.what.seed;
  watching.world = s.what.world;
  watching.record = s.what.record;
  for (std::size_t i = 0; i < s.hosts.size(); ++i) watching.peer_machines.push_back(static_cast<std::uint32_t>(i + 1));
  watching.link_name = [&s](netem::link_id link) { return s.in->net().name_of(link); };
  watching.listener = s.options.listener;
  watching.region_of = [&s](std::uint32_t machine, const std::string& name) {
    if (const auto peer = s.peer_of.find(machine); peer != s.peer_of.end()) return s.hosts[peer->second].region;
    for (const auto& [relay, one] : s.what.network.relays)
      if (name == "relay." + relay) return one.region;
    const auto shards = shard_hosts(s.what);
    const auto shard = static_cast<std::size_t>(std::find(shards.begin(), shards.end(), name) - shards.begin());
    return shard > 0 && shard <= s.what.data.replica_regions.size() ? s.what.data.replica_regions[shard - 1] : s.what.data.region;
  };
  watching.identify = [&s](netem::host_index host) {
    return host_identity{s.in->net().name_of(host), s.in->net().machine_of(host), s.in->net().incarnation(host)};
  };
  watching.bytes_sent = [&s] { return s.bytes_sent(); };
  if (s.what.world == "loopback" || s.options.node)
    watching.wire = [&s] {
      wire_counts out;
      if (!s.in) return out;
      const auto seen = s.in->wire()->counts();
      for (std::size_t i = 0; i < out.received_bytes.size(); ++i) out.received_bytes[i] = s.in->net().received_bytes(i);
      out.links_open = seen.links_open;
      out.links_lost = seen.links_lost;
      out.held_back = seen.held_back;
      out.bulk_window_bytes = seen.unhandled_bytes;
      // Names of closed lists, which outlive this.
      const auto of = [](const std::map<std::string, std::uint64_t>& counts, std::string_view name) { return counts.at(std::string(name)); };
      for (const auto name : netem::wire::gate_refusal_names) out.handshakes_refused.emplace_back(name, of(seen.connections_refused, name));
      for (const auto name : netem::wire::refusal_names)
        if (name != "none") out.handshakes_refused.emplace_back(name, of(seen.connections_refused, name));
      for (const auto name : netem::wire::frame_refusal_names) out.frames_refused.emplace_back(name, of(seen.frames_refused, name));
      return out;
    };
  if (has_nat(s.what))
    watching.true_reach = [&s](std::uint32_t machine) {
      // The classes stand in the order of actors::reach, which begins with unknown.
      const auto found = s.peer_of.find(machine);
      return found == s.peer_of.end() ? actors::reach::unknown
                                      : static_cast<actors::reach>(static_cast<int>(s.hosts[found->second].nat) + 1);
    };
  if (s.what.training.epochs > 0) watching.epochs_planned = s.what.training.epochs;
  watching.invariants.lease_time = s.what.data.lease_time;
  watching.invariants.staleness_allowed = staleness_allowed(s.what);
  for (const auto& each : s.what.faults)
    if (cuts_off(each.kind)) watching.invariants.longest_cut = std::max(watching.invariants.longest_cut, each.lasts);
  const auto codecs = codecs_of(s.what.averaging, *s.averaged).first;
  auto& mass = watching.invariants.mass;
  // What a codec that drops values leaves is what is contributed.
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
  // What a dead peer leased last may be nobody's for another lease, from when the next primary takes over.
  watching.invariants.takeovers = s.options.node || has_takeovers(s.what);
  if (watching.invariants.takeovers) watching.invariants.lease_time += s.what.network.detection_time;
  if (averages_parameters(s.what)) {
    watching.invariants.max_epoch_difference = s.what.training.max_staleness;
    watching.invariants.weights_are_samples = false;
  }
  watching.invariants.one_branch = !averages_parameters(s.what);
  watching.invariants.computes_meanwhile = averages_parameters(s.what) || s.what.training.overlap != overlap_mode::none;
  if (s.options.node)
    watching = local_view_of(std::move(watching), s.role.peer ? std::optional(static_cast<std::uint32_t>(*s.role.peer + 1)) : std::nullopt);
  if (s.options.node && s.options.node->sign) {
    const auto common = common_text(s.what);
    watching.on_contribution = [&s, to = directory ? &*directory : nullptr, scenario_hash = hash_of(std::as_bytes(std::span(common))).hex()](
                                   const swarm_round& round, std::uint64_t samples) { s.on_contribution(to, scenario_hash, round, samples); };
  }
  auto observers = run_observers::create(std::move(watching), directory ? &*directory : nullptr);
  if (!observers) return failure{observers.error()};
  s.observers = std::move(*observers);
  if (s.options.on_metrics) s.options.on_metrics(s.observers->values().registry());

  if (s.options.listener != nullptr) s.options.listener->begun(s.run_yaml(false));

  // Before there is a world, so that the row of time 0 has it, and the wall clock does not pay for it.
  run_outcome out;
  auto first = s.first_state();
  auto first_loss = s.work->held_out_loss(first);
  if (std::isfinite(first_loss)) {
    s.observers->on_held_out_loss({}, first_loss);
    if (const auto every = s.what.record.held_out_every; every > 0) s.held_out_next = (first.epoch / every + 1) * every;
  }
  out.text_prompt = s.work->sample_prompt();
  out.text_before = s.work->sample_text(first, s.what.seed);

  s.build();
  s.started_utc_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count() -
                     s.in->clock().now().count();
  // A process of a cluster may be killed: what it leaves says whose it is.
  if (s.options.node && directory)
    if (auto written = directory->write("run.yaml", s.run_yaml(false)); !written) return failure{written.error()};
  auto ended = s.run_world(out.interrupted);
  if (auto broken = s.in->broken()) return failure{*broken};
  if (s.checkpoint_error) return *s.checkpoint_error;
  auto best = s.pool->best();
  end_facts facts;
  facts.time = s.in->clock().now();
  facts.deterministic = s.simulated();
  facts.leaks = s.leaks();
  if (s.role.shard) best = s.pool->initial();            // it has trained nothing
  if (best) facts.leading = best->id;
  facts.loss.first = finite(first_loss);
  facts.loss.final = finite(s.work->held_out_loss(*best));
  if (facts.loss.final) s.observers->on_held_out_loss(s.stamp(facts.time), *facts.loss.final);
  if (!best->parameters.is_hollow()) facts.state_hash = hash_of(best->parameters.bytes()).hex();
  out.text_after = s.work->sample_text(*best, s.what.seed);
  if (s.options.baseline && s.work->has_references() && !out.interrupted && best->epoch > 0) {
    if (s.options.on_status) s.options.on_status(s.status("baseline"));
    auto references = s.work->references(steps_of_machine(s.what, best->epoch), s.options.threads);
    facts.loss.baseline = finite(references.baseline);
    facts.loss.bigram = finite(references.bigram);
  }
  facts.wall_seconds = seconds_since(s.started);
  auto finished = s.observers->finish(facts, out.summary);
  out.late = s.in->late();
  if (const auto totals = s.in->net().reachability_totals(); totals && out.summary.reachability) {
    auto& into = *out.summary.reachability;
    const auto& c = totals->connections;
    std::tie(into.direct, into.reversed, into.punched, into.relayed) = std::tie(c[0], c[1], c[2], c[3]);
    into.relayed_bytes = totals->relayed_bytes;
    into.no_relay = totals->unreachable[0];
    into.relay_spent = totals->unreachable[1];
  }
  if (!s.simulated()) out.summary.distortion = summary::late_totals{out.late.late_steps, out.late.late_seconds};
  out.summary.virtual_seconds = to_seconds(ended);
  // What holds at the end of a run need not hold before it.
  bool early = out.interrupted || (!s.goal_reached && s.options.until && *s.options.until < s.what.stop_time);
  out.expectations_judged = !early || s.what.expect.empty();
  for (const auto& [metric, bound] : s.what.expect) {
    if (early) break;
    auto value = metric == "peers_alive" ? static_cast<double>(out.summary.peers.alive) : summary_number(out.summary, metric);
    if (!value)
      out.missed.push_back(fmt::format("expect: {} has no value in this run", metric));
    else if (bound.min && *value < *bound.min)
      out.missed.push_back(fmt::format("expect: {} is {}, wanted at least {}", metric, *value, *bound.min));
    else if (bound.max && *value > *bound.max)
      out.missed.push_back(fmt::format("expect: {} is {}, wanted at most {}", metric, *value, *bound.max));
  }
  if (!finished) return failure{finished.error()};
  if (directory)
    if (auto written = s.write(*directory, out.summary, out.interrupted); !written) return failure{written.error()};
  if (s.options.listener != nullptr) {
    s.options.listener->begun(s.run_yaml(out.interrupted));
    s.options.listener->ended(to_json(out.summary));
  }
  return out;
}

}  // namespace shoal::scenarios
