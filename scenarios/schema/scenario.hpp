// Everything one YAML file says about a run, as plain structs. Each struct has a describe()
// (scenarios/schema/describe.hpp) that names every option once: the parser, '--set a.b=c', the
// resolved scenario printed by 'shoal check --show' and the reference page all come from it.
#pragma once

#include "actors/averaging/part_split.hpp"
#include "kernels/base/units.hpp"
#include "kernels/compress/codec.hpp"
#include "kernels/optimizer.hpp"
#include "netem/nat_rules.hpp"
#include "netem/path_quality.hpp"
#include "netem/transport.hpp"
#include "scenarios/schema/churn_options.hpp"
#include "scenarios/schema/fault.hpp"
#include "scenarios/schema/over_time.hpp"
#include "scenarios/schema/registry.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

using namespace std::chrono_literals;

struct workload_definition; // scenarios/workloads/workload.hpp
struct method_definition;   // scenarios/methods/method.hpp
struct role_definition;     // scenarios/roles/role.hpp
struct program_definition;  // scenarios/programs/program.hpp
kind_list workload_kinds();
kind_list method_kinds();
kind_list role_kinds();
kind_list program_kinds();

/// What a peer computes with.
struct device_class {
  double samples_per_second = 10; ///< forward and backward of one sample, > 0
  double jitter = 0;    ///< standard deviation of a job's duration as a fraction of it, [0, 1)
  duration step_time{}; ///< one optimizer step
  bool offload = false; ///< the host's processor makes it, with its state in the host's memory
  bool operator==(const device_class&) const = default;
};

/// The way between two regions, both ways.
struct region_link {
  std::string from, to;
  path_options path;
  over_time_options over_time; ///< delay and loss
  bool operator==(const region_link&) const = default;
};

/// Everything that goes in and out of a region passes here.
struct shared_link {
  std::string region;
  data_rate up, down;          ///< out of the region and into it, required, > 0
  over_time_options over_time; ///< up and down
  bool operator==(const shared_link&) const = default;
};

struct network_tcp_options {
  netem::congestion_control congestion = netem::congestion_control::cubic;
  std::uint64_t initial_window = 10; ///< packets
  data_size max_window{4 * 1024 * 1024};
  std::uint64_t queue = 100; ///< packets in front of each link
  bool operator==(const network_tcp_options&) const = default;
};

/// Passes on what peers behind address translation cannot send each other.
struct relay_options {
  std::string region; ///< default: the first region
  data_rate up{1e9}, down{1e9};
  data_size budget; ///< bytes relayed in a run, required, > 0
  bool operator==(const relay_options&) const = default;
};

struct network_options {
  netem::transfer_model model = netem::transfer_model::tcp;
  network_tcp_options tcp;
  std::vector<std::string> regions{"everywhere"};
  duration default_delay = 50ms; ///< between (and inside) regions that no link names, one way
  duration default_jitter{};
  std::vector<region_link> links; ///< from == to describes the inside of a region
  std::map<std::string, shared_link> shared_links;
  std::map<std::string, relay_options> relays;
  double hole_punching = 0.7;   ///< probability that it works for a pair that can, [0, 1]
  duration detection_time = 5s; ///< how long the silence of a lost machine lasts before others know
  bool operator==(const network_options&) const = default;
};

/// Network coordinates of a group's hosts; all zero: none.
struct coordinate_options {
  duration x{}, y{}, height{};
  duration spread{}; ///< standard deviation of x and y around the group's, from the run's seed
  bool operator==(const coordinate_options&) const = default;
};

/// What a host does in the swarm: a kind that is registered (scenarios/roles/), with its options.
struct role_choice : choice {
  role_choice(); ///< the default kind
  using choice::choice;
  const role_definition& definition() const;
};

/// `count` hosts alike, named '<group>-0', '<group>-1', ... unless they have names.
struct peer_group {
  std::string name;        ///< the key in the file
  std::uint64_t count = 1; ///< default: as many as there are names
  std::vector<std::string> names;
  std::string region;          ///< default: the first region
  std::string line;            ///< a preset for what follows and is not given: lines.hpp
  data_rate up, down;          ///< required without `line`, > 0
  path_options access;         ///< of each host's line, on top of what is between the regions
  over_time_options over_time; ///< how all that changes
  netem::nat_class nat = netem::nat_class::open;
  std::uint64_t hosts_per_line = 1; ///< so many consecutive hosts share one line
  coordinate_options coordinates;
  role_choice role;               ///< its options stand beside it in the file
  std::string conduct = "honest"; ///< a name of actors::conducts()
  std::string device;             ///< required, a key of `devices`; of an auxiliary peer: not used
  duration start{};               ///< when the first one starts, or begins with its churn
  duration start_spacing{};       ///< each further one this much later
  bool absent = false;            ///< starts only by a 'join' fault
  churn_options churn;
  bool operator==(const peer_group&) const = default;
};

struct data_options {
  /// Paths or globs. Relative ones are taken from the scenario's folder and made absolute by
  /// load().
  std::vector<std::string> files{"/usr/share/common-licenses/*"};
  std::string field = "text"; ///< of each object in a file of JSON lines
  std::uint64_t shuffle_buffer =
      0;                ///< windows are shuffled among so many that are read in order; 0: among all
  double holdout = 0.1; ///< the last part of each file is held out, (0, 0.5]
  std::string region;   ///< where the shard's host is; default: the first region
  data_rate up{1e9}, down{1e9};        ///< the shard host's link
  std::uint64_t prefetch_samples = 64; ///< credit: at most so many leased, unused samples a peer
  duration lease_time = 60s;      ///< a lease not renewed or committed for this long is returned
  std::uint64_t replicas = 1;     ///< hosts shard-0, shard-1, ...: one serves, the others take over
  std::vector<std::string> names; ///< of these hosts, if they have others
  std::vector<std::string>
      replica_regions; ///< of shard-1, shard-2, ...; those that are not named are in `region`
  bool operator==(const data_options&) const = default;
};

/// The workload of a run: a kind that is registered (scenarios/workloads/), with its options.
struct workload_choice : choice {
  workload_choice(); ///< the default kind
  using choice::choice;
  const workload_definition& definition() const;
};

/// The training method of a run: a kind that is registered (scenarios/methods/), with its options.
struct method_choice : choice {
  method_choice(); ///< the default kind
  using choice::choice;
  const method_definition& definition() const;
};

struct training_options {
  method_choice method;          ///< its options stand beside it in the file
  std::uint64_t micro_batch = 8; ///< samples in one compute job
  std::uint64_t epochs = 0;      ///< stop after so many; 0: only stop_time ends the run
  duration min_refresh = 200ms,
           max_refresh = 5s;      ///< bounds on how often a peer publishes and reads progress
  duration record_lifetime = 15s; ///< expiration of a progress record
  std::uint64_t max_uploads = 8;  ///< downloads of its state that a peer serves at once
  std::string
      start_from; ///< a checkpoint; load() makes it absolute; empty: the workload's own beginning
  std::uint64_t checkpoint_every = 0; ///< epochs between two checkpoints; 0: only one at the end
  kernels::optimizer_config optimizer;
  bool operator==(const training_options&) const = default;
};

struct averaging_options {
  std::uint64_t group_size = 256; ///< maximum members of a group
  std::string grid; ///< of methods with small groups: '8x8'; default: the smallest square that
                    ///< holds all hosts
  std::uint64_t min_group_size =
      1;                          ///< a smaller group fails with 'group_too_small' and tries again
  duration matchmaking_time = 5s; ///< the leader waits at most this long for known peers
  duration round_timeout = 120s;  ///< a round that lasts longer fails
  duration sender_timeout =
      10s; ///< a reducer that hears nothing of a sender for this long goes on without it
  data_size chunk_size{256 * 1024}; ///< parts travel in pieces of at most this size
  actors::part_split split = actors::part_split::adaptive;
  std::string aggregator = "mean";                   ///< a name of actors::aggregators()
  kernels::codec compression = kernels::codec::none; ///< of what members send to reducers
  std::optional<kernels::codec>
      means_compression; ///< of what comes back; default: as `compression`, and none with top_k
  double top_k_fraction = 0.01; ///< of the values of each piece, (0, 1]
  std::uint64_t power_sgd_rank =
      0; ///< gradients are averaged as matrices of this rank, in two rounds; 0: they are not
  bool operator==(const averaging_options&) const = default;
};

enum class event_detail { all, rounds, none };

struct record_options {
  event_detail events = event_detail::rounds;
  std::uint64_t peers = 0; ///< with events 'all': only events of a sample of so many peers; 0: all
  duration metrics_interval = 1s; ///< virtual time between two rows of metrics.csv
  std::uint64_t held_out_every =
      10; ///< epochs between two held-out losses; 0: only the first and the last
  std::uint64_t transfers = 200'000; ///< transfers.jsonl.zst holds the first so many; 0: none
  bool operator==(const record_options&) const = default;
};

/// What a metric of summary.json has to be for the run to count as a success. At least one bound.
struct expectation {
  std::optional<double> min, max; ///< both inclusive
  bool operator==(const expectation&) const = default;
};

/// The program of the file: a kind that is registered (scenarios/programs/), with its options.
struct program_choice : choice {
  program_choice(); ///< training
  using choice::choice;
  const program_definition& definition() const;
  /// Whether the program reads the top-level key.
  bool reads(std::string_view key) const;
};

struct scenario {
  std::string name; ///< default: the file's stem
  std::string description;
  std::uint64_t seed = 1;
  std::string world = "sim";
  duration stop_time{}; ///< required: virtual time at which the run ends at the latest
  network_options network;
  std::map<std::string, device_class> devices;
  std::vector<peer_group> peers; ///< in the file's order
  data_options data;
  workload_choice workload;
  training_options training;
  averaging_options averaging;
  std::vector<fault> faults;
  double failpoints = 0; ///< probability with which branches of actors/failpoints.hpp are taken
  record_options record;
  std::map<std::string, expectation> expect; ///< by metric name
  program_choice program;                    ///< training, or the one whose section the file has
  bool operator==(const scenario&) const = default;
};

} // namespace shoal::scenarios
