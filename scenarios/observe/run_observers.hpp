// All observers of a run behind one object, which the runner tells everything: history's hash, the
// event log, rounds, invariants, metrics, and at the end the summary. Nothing here influences the
// run. Thread safety: none; all calls come under one lock. Times never go back.
//
// A process of a cluster sees one host only (observer_options::view). Then rounds, samples and
// peers are this host's, what takes several members to judge is not judged, and the logs are
// flushed as they grow, so that a process that is killed leaves what it knew.
#pragma once

#include "actors/ids.hpp"
#include "actors/probes.hpp"
#include "actors/reachability/reach.hpp"
#include "scenarios/observe/epoch_table.hpp"
#include "scenarios/observe/event_log.hpp"
#include "scenarios/observe/history.hpp"
#include "scenarios/observe/invariants.hpp"
#include "scenarios/observe/metrics.hpp"
#include "scenarios/observe/rounds.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/observe/run_listener.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/observe/traffic_table.hpp"
#include "scenarios/observe/transfer_log.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shoal::actors {
class observation;
} // namespace shoal::actors

namespace shoal::scenarios {

struct observer_options {
  std::string scenario; ///< its name
  std::uint64_t seed = 1;
  std::string world = "sim";
  record_options record;
  /// Machines that are peers; record.peers samples from these.
  std::vector<std::uint32_t> peer_machines;
  /// Who a host of the fabric is. Asked once for each; may be asked from on_event.
  host_names::identify identify;
  /// What a link of the fabric is called, for transfers.jsonl.zst; empty: no such file.
  transfer_log::link_names link_name;
  /// Bytes sent so far by traffic class (data, averaging, state, control); may be empty.
  std::function<std::array<std::uint64_t, 4>()> bytes_sent;
  /// What the network between real hosts counted so far; empty in a world that has none.
  std::function<wire_counts()> wire;
  /// What a peer's machine really is; empty where all are open.
  std::function<actors::reach(std::uint32_t machine)> true_reach;
  /// Which region a machine of this name is in, for traffic.csv; empty: no such file. Asked once
  /// for each; may be asked from on_event.
  std::function<std::string(std::uint32_t machine, const std::string& name)> region_of;
  /// A round with so many samples of a host's peer has ended, for each of them; may be empty.
  std::function<void(const swarm_round& round, std::uint64_t samples)> on_contribution;
  run_listener* listener = nullptr; ///< hears what the run directory gets; may be null
  invariant_options invariants;
  std::optional<std::uint64_t> epochs_planned;      ///< where training ends
  duration round_grace = std::chrono::seconds(120); ///< see round_book
  observed_view view = observed_view::whole;
};

/// What the process of one host observes with, of options for the whole run: that host's peer, if
/// it has one, and nobody else's.
observer_options local_view_of(observer_options whole, std::optional<std::uint32_t> peer_machine);

/// What only the runner knows, at the end.
struct end_facts {
  duration time{};
  double wall_seconds = 0;
  bool deterministic = true; ///< false: no event hash (any world but sim)
  std::optional<std::string> state_hash;
  summary::losses loss; ///< what is missing is taken from on_held_out_loss
  leak_facts leaks;
  std::optional<actors::state_id> leading; ///< the state that the run ends with
};

/// For the live line.
struct run_progress {
  duration time{};
  std::uint64_t epoch = 0;
  std::uint64_t samples = 0;        ///< in completed rounds
  std::optional<double> train_loss; ///< of the last row of metrics with any
  std::optional<double> held_out_loss;
  std::uint64_t peers_joined = 0, peers_left = 0, peers_alive = 0, peers_in_sync = 0;
  std::uint64_t events = 0;
  std::uint64_t violations = 0;
};

class run_observers {
public:
  /// `directory` may be null: then nothing is written. Errors: a file cannot be created.
  static result<std::unique_ptr<run_observers>> create(observer_options options,
                                                       const run_directory* directory);
  ~run_observers();
  run_observers(const run_observers&) = delete;

  /// Each event of the fabric, in order.
  void on_event(const netem::delivered_event& event);
  /// Each transfer of bulk, when it ends.
  void on_transfer(const netem::transfer_record& what);
  /// What an actor of `peer`, on machine `machine`, observes. Hosts without a peer (the shard's)
  /// observe too, under an id that never started; the log's sample does not leave them out.
  void on_observation(duration time, actors::peer_id peer, std::uint32_t machine,
                      std::string_view host_name, const actors::observation& what);
  /// An incarnation of a peer's host starts or is killed. Not for hosts without a peer. `reason` is
  /// a word for peers.csv. `machine` and `incarnation`: as identify() has them.
  void on_host_started(duration time, actors::peer_id peer, std::string_view host_name,
                       std::uint32_t machine, std::uint32_t incarnation);
  void on_host_killed(duration time, actors::peer_id peer, std::string_view reason = "killed");
  /// An actor of this process reached this probe. Requires: the probe is one of
  /// actors::probes::all.
  void on_point(std::string_view point);
  /// A fault of the scenario strikes these hosts, or its effect on them is over; `hosts` is empty
  /// if the fault is about all of them. `cuts_off`: the fault keeps hosts from hearing of others.
  void on_fault(duration time, std::size_t number, const char* action, bool begins, bool cuts_off,
                const std::vector<std::string>& hosts);
  void on_held_out_loss(duration time, double loss);
  /// Time has come to `time`. On the wall clock nothing may happen for long; whoever calls this now
  /// and then has rows and metrics all the same.
  void on_time(duration time) { advance(time); }

  run_progress progress() const;
  const round_counts& rounds() const noexcept { return rounds_.counts(); }
  const invariants& checks() const noexcept { return invariants_; }
  const metrics& values() const noexcept { return metrics_; }
  /// Set when a log cannot be written (disk full): the run should end, finish() returns it too.
  const std::optional<failure>& write_error() const noexcept;

  /// Ends all books and writes metrics.csv, metrics.prom, epochs.csv, peers.csv, contributions.csv,
  /// traffic.csv, events.jsonl.zst and transfers.jsonl.zst; summary.json is for the caller to
  /// write, who may add a baseline. Call once. Errors: a file cannot be written. The summary is in
  /// `into` all the same.
  result<void> finish(const end_facts& facts, summary& into);

private:
  run_observers(observer_options options, const run_directory* directory);
  void advance(duration time);
  void keep_what_is_known();
  void sample(duration time);
  void count_peers(duration until);
  void end_day(duration time);
  void on_round(const swarm_round& what);
  void tell_traffic();
  void count_traffic(const netem::delivered_event& event);
  void keep_epochs(const std::string& rows);
  void left(duration time, actors::peer_id peer, std::string_view reason);
  std::string peers_csv() const;
  std::string name_of(actors::peer_id peer) const;

  observer_options options_;
  const run_directory* directory_;
  host_names names_;
  history_hash history_;
  invariants invariants_;
  round_book rounds_;
  metrics metrics_;
  epoch_table epochs_;
  std::unique_ptr<output_file> csv_, epochs_csv_, contributions_csv_;
  std::unique_ptr<traffic_table> traffic_;
  std::unique_ptr<event_log> log_;
  std::unique_ptr<transfer_log> transfers_;

  struct peer_entry {
    std::string name;
    std::uint32_t machine = 0, incarnation = 0;
    duration started{};
    bool alive = true;
    duration ended{};
    std::string reason{};                         // why it is not alive
    actors::reach reach = actors::reach::unknown; // as it last believed
    std::uint64_t computed = 0;                   // since its last contribution
    double loss_sum = 0;                          // of these
  };
  std::unordered_map<actors::peer_id, peer_entry> peers_; // iterated only in the order of the ids
  duration now_{}, next_sample_{}, last_sample_{};
  std::uint64_t joined_ = 0, left_ = 0, misbehaved_ = 0, faults_struck_ = 0;
  std::array<std::uint64_t, actors::probes::all.size()> points_{};
  std::uint64_t learned_right_ = 0, learned_wrong_ = 0;
  std::uint64_t samples_ = 0;  // in completed rounds
  std::uint64_t computed_ = 0; // since the last row
  double loss_sum_ = 0;        // of these
  std::optional<double> train_loss_, first_held_out_, held_out_;
  std::vector<summary::day_totals> days_; // that are over
  summary::day_totals before_today_;      // totals; `peers` unused
  std::uint64_t heard_transfers_ = 0;
  duration day_began_{}, peers_counted_{};
  double peer_seconds_ = 0; // of today
};

} // namespace shoal::scenarios
