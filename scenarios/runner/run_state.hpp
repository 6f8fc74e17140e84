// The state of a run in progress. Private to the files of this folder, which build the world, watch
// it and advance its time.
#pragma once

#include "actors/data/corpus.hpp"
#include "actors/data/sample_ledger.hpp"
#include "actors/dht/dht_node.hpp"
#include "actors/dht/messages.hpp"
#include "actors/reachability.hpp"
#include "actors/training/state_pool.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/observe/node_report.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/record/rounds_file.hpp"
#include "scenarios/roles/role.hpp"
#include "scenarios/runner/churn_engine.hpp"
#include "scenarios/runner/desertion.hpp"
#include "scenarios/runner/faults.hpp"
#include "scenarios/runner/line_engine.hpp"
#include "scenarios/runner/live_export.hpp"
#include "scenarios/runner/network_setup.hpp"
#include "scenarios/runner/run_goal.hpp"
#include "scenarios/runner/runner.hpp"
#include "scenarios/runner/shard_unit.hpp"
#include "scenarios/runner/world.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/workloads/prepared.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shoal::scenarios {

using wall_clock = std::chrono::steady_clock;

inline double seconds_since(wall_clock::time_point start) {
  return std::chrono::duration<double>(wall_clock::now() - start).count();
}

/// True if a host of `what` is behind address translation.
bool has_nat(const scenario& what);
/// Configures how peers of `what` detect whether other hosts can reach them.
actors::reachability_config reachability_of(const scenario& what);
/// True if a fault of this kind keeps hosts from receiving messages.
bool cuts_off(fault_kind what);

struct runner::state {
  scenario what;
  runner_options options;
  std::vector<branch_point> branches; // branches of the random streams; each points to the next
  std::vector<duration> stops;        // times of the branches and of options.moments
  std::size_t stops_passed = 0;
  std::unique_ptr<prepared_workload> work;
  // The workload of the peers: work->work(), or PowerSGD around that workload.
  std::shared_ptr<const actors::workload> averaged;
  std::optional<training_start> start; // checkpoint in place of the initial model
  actors::corpus_root corpus;
  std::shared_ptr<const hash_tree> corpus_tree;       // on hosts that have the samples
  std::vector<std::optional<churned_host>> join_plan; // index: as `hosts`
  std::vector<host_spec> hosts;
  node_role role; // role of this process; used with options.node

  // State of the running world. On the wall clock, actors of several threads observe at once.
  // `watching` guards the observers and the members from here to `started`. It is the innermost
  // lock: no code that holds it calls the world.
  mutable std::recursive_mutex watching;
  duration last_event{}; // latest time of an event; keeps the observers' time monotonic
  bool over = false;     // the run has ended; later reports of the wire are ignored
  std::map<netem::host_index, rng> failpoint_draws;
  std::unique_ptr<run_observers> observers;
  rounds_recorder rounds;
  node_facts reported; // used with options.node
  std::shared_ptr<actors::state_pool> pool;
  actors::averaging_codecs codecs;
  std::vector<shard_unit> shards;
  std::uint64_t shards_started = 0; // also the index range of the next shard to start
  std::unique_ptr<churn_engine> churn;
  std::unique_ptr<world> in;
  std::unique_ptr<effects> on_hosts;
  std::unique_ptr<fault_engine> faults;
  std::vector<line_plan> line_plans;
  std::unique_ptr<line_engine> lines;
  std::vector<netem::machine_index> machines;          // machines of the peers; index: as `hosts`
  std::map<netem::machine_index, std::size_t> peer_of; // index into hosts
  std::map<netem::machine_index, caf::actor> peers;    // actors of the running peers
  std::map<netem::machine_index, caf::actor> nodes;    // DHT nodes, on hosts of peers and of shards
  std::shared_ptr<actors::signature_cache> signatures;
  std::map<actors::peer_id, std::uint64_t>
      open_rounds;                // rounds with a contribution that have not ended
  std::set<actors::peer_id> dead; // killed hosts; wall clock only
  static constexpr std::size_t most_names_of_peers = 16'384;
  std::map<actors::peer_id, std::string> names_of_peers; // data shards, and other processes
  std::set<std::string> unreached;                       // addresses whose last dial failed
  desertion deserted;                                    // whether everybody has left a cluster
  std::uint64_t rounds_asked = 0;
  std::filesystem::path checkpoint_folder;   // empty: the run keeps no checkpoints
  std::set<std::uint64_t> checkpoint_epochs; // epochs with a checkpoint
  std::optional<live_export> exports;        // empty: the run writes no files
  std::optional<failure> checkpoint_error;
  std::uint64_t held_out_next = 0; // epoch of the next held-out loss; 0: none
  bool held_out_due = false;
  std::map<std::string, std::shared_ptr<actors::collusion>> colluding; // by group
  run_goal goal;                                                       // decides the end of the run
  std::atomic<bool> draining{false}, told_to_leave{false};
  std::atomic<bool> refused{false};   // no host of the swarm takes this one
  std::uint64_t committed_epochs = 0; // epochs whose rounds the shard of this process has committed
  std::vector<banned_member> known_bans; // from the node's file
  std::mutex saving_bans;                // guards the node's file
  duration deserted_for() const { return 5 * what.network.detection_time; }
  wall_clock::time_point started = wall_clock::now();
  std::int64_t started_utc_ns = 0; // UTC of the world's time zero
  contribution_total contributed;  // contribution of this node
  std::string contribution;        // signed text of `contributed`, with options.node->sign

  ~state() {
    // Callbacks of actors and of the network use the members until then, `in` among them.
    if (in) in->stop();
    // Actor addresses must not outlive their world.
    peers.clear();
    nodes.clear();
    in.reset();
  }

  bool simulated() const { return what.world == "sim"; }
  run_seed seed() const { return {what.seed, branches.empty() ? nullptr : branches.data()}; }
  /// Runs the world until `end`. Stops at the moments before it, and passes the branches there.
  void run_until(duration end);
  const peer_group& group_of(const host_spec& host) const {
    return *std::find_if(what.peers.begin(), what.peers.end(),
                         [&](const peer_group& g) { return g.name == host.group; });
  }
  const role_definition& role_on(netem::machine_index machine) const {
    return *hosts[peer_of.at(machine)].role;
  }
  /// False in the process of a stage or of a data shard, which has no state of the whole model.
  bool has_model() const {
    return !role.shard && (!role.peer || hosts[*role.peer].role->has_model);
  }
  /// Actors on the idle host of a peer, its DHT node included.
  std::uint64_t idle_actors(netem::machine_index machine) const {
    const auto own = role_on(machine).idle_actors;
    return own > 0 ? own : traits_of(what).idle_actors;
  }
  /// True if this process runs the peer at index `host`.
  bool runs_peer(std::size_t host) const { return !options.node || role.peer == host; }
  bool runs_shard(std::size_t shard) const { return !options.node || role.shard == shard; }
  world_options options_of_world();
  void schedule_hosts();
  real_network network_between_hosts();
  bool may_be_deserted() const { return options.node && what.training.epochs > 0; }
  template <class Message>
  void tell_node(netem::host_index mine, const netem::wire::connected_peer& other);
  /// Introduces DHT nodes to each other when their hosts link.
  void meet(netem::host_index mine, const netem::wire::connected_peer& other);
  duration stamp(duration time) { return last_event = std::max(last_event, time); }
  void build();
  /// The conduct of a host that starts. The attackers of a group share what they know.
  std::shared_ptr<actors::conduct> conduct_of(const host_spec& spec, actors::host& on);
  /// Boots the machine of a peer. Every start of a peer passes here: by the schedule, churn,
  /// faults.
  void start_peer(netem::machine_index machine);
  /// The machine has booted.
  void start_actors(netem::machine_index machine, actors::host& host);
  void start_shard(shard_unit& shard);
  /// Finds data shards by the names that the scenario gives their hosts, for the actors on `by`.
  actors::shard_finder find_shards(const actors::host& by);
  void start_host(netem::machine_index machine);
  caf::actor start_node(actors::host& on, std::shared_ptr<actors::conduct> conduct);
  bool lives(netem::machine_index machine) const {
    return in->net().host_on(machine) != netem::no_host;
  }
  /// The authoritative ledger: leading_ledger().
  const actors::sample_ledger& ledger() const {
    return leading_ledger(shards, [this](netem::machine_index machine) { return lives(machine); });
  }
  bool takes_failpoint(netem::host_index host, std::string_view branch);
  void on_event(const netem::delivered_event& event);
  void on_observation(const actors::host& from, const actors::observation& seen);
  void keep_checkpoint(const actors::state_ptr& state, std::uint64_t data_from);
  /// Index of the run's first sample, counted from the first run of a chain of checkpoints.
  std::uint64_t data_before() const { return start ? start->data_from : 0; }
  actors::model_state first_state() const { return start ? start->state : averaged->initial(); }
  void drain();
  bool quiet() const;
  void measure_held_out();
  void held_out_at(std::uint64_t epoch);
  void export_if_due();
  duration run_world(bool& interrupted);
  leak_facts leaks() const;
  std::string run_yaml(bool interrupted) const;
  result<void> write(const run_directory& to, const summary& result, bool interrupted) const;
  live_status status(const char* doing);
  observer_options what_to_watch(const run_directory* directory);
  /// Measures the initial state, and stores a text sample of its model in `into`.
  double measure_first(run_outcome& into);
  /// Collects the facts of the summary. `first_loss` is the result of measure_first(). Sets
  /// into.comparison_ended.
  end_facts facts(const actors::model_state& best, double first_loss, run_outcome& into);
  /// Trains one machine for `steps` steps, and stores its losses.
  void compare(std::uint64_t steps, summary::losses& losses, run_outcome& into);
  void complete(run_outcome& into) const;
  std::array<std::uint64_t, 4> bytes_sent() const; // data, averaging, state, control
  void on_contribution(const run_directory* to, const std::string& scenario_hash,
                       const swarm_round& round, std::uint64_t samples);
  result<void> load_known_bans();
  static std::string name_of_banned(const banned_member& what);
  void on_ban(const actors::host& by, const banned_member& what);
  node_report report();
  netem::wire::control_answer answer(const netem::wire::control_client& who,
                                     const std::string& question);
};

} // namespace shoal::scenarios
