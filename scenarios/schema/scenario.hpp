// The contents of one scenario file, as plain structs. Each struct has a describe() in
// scenarios/schema/describe.hpp, which names every option once. The parser, '--set a.b=c', the
// resolved scenario of 'shoal check --show' and the reference page all use this description.
#pragma once

#include "actors/averaging/part_split.hpp"
#include "actors/conduct/conduct_options.hpp"
#include "kernels/base/units.hpp"
#include "kernels/compress/codec.hpp"
#include "kernels/optimizer.hpp"
#include "netem/nat_rules.hpp"
#include "netem/path_quality.hpp"
#include "netem/transport.hpp"
#include "scenarios/schema/aggregator_choice.hpp"
#include "scenarios/schema/churn_options.hpp"
#include "scenarios/schema/fault.hpp"
#include "scenarios/schema/over_time.hpp"
#include "scenarios/schema/registry.hpp"
#include "scenarios/schema/security_options.hpp"

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

/// The speed of a peer's computer.
struct device_class {
  double samples_per_second = 10; ///< forward and backward passes, > 0
  double jitter = 0;    ///< standard deviation of a job's duration as a fraction of it, [0, 1)
  duration step_time{}; ///< duration of one optimizer step
  bool offload = false; ///< the CPU makes the step, with the optimizer state in host memory
  /// Rate at which the host serializes, encrypts and copies bulk, sent and received together; 0:
  /// no time.
  data_rate serialize;
  data_size memory; ///< memory that training may take, for 'shoal plan'; 0: not known
  bool operator==(const device_class&) const = default;
};

/// The network path between two regions, in both directions.
struct region_link {
  std::string from, to;
  path_options path;
  over_time_options over_time; ///< changes of delay and loss
  bool operator==(const region_link&) const = default;
};

/// A link that carries all traffic into and out of a region.
struct shared_link {
  std::string region;
  data_rate up, down;          ///< rates out of and into the region, required, > 0
  duration buffer{};           ///< both queues, in time; 0: network_tcp_options::buffer
  over_time_options over_time; ///< changes of both rates
  bool operator==(const shared_link&) const = default;
};

struct network_tcp_options {
  netem::congestion_control congestion = netem::congestion_control::cubic;
  std::uint64_t initial_window = 10; ///< packets
  bool slow_start_after_idle = true;
  data_size max_window{4 * 1024 * 1024};
  std::uint64_t connections = 1; ///< that carry bulk from one host to another
  std::uint64_t queue = 100;     ///< least length of each link's queue, packets
  duration buffer = 50ms;        ///< further length of each link's queue, at the link's full rate
  bool push_back = true;         ///< a host's own line delays its senders and drops nothing
  bool operator==(const network_tcp_options&) const = default;
};

/// A host that forwards traffic between peers whose address translation blocks a direct connection.
struct relay_options {
  std::string region; ///< default: the first region
  data_rate up{1e9}, down{1e9};
  data_size budget; ///< limit on bytes relayed in a run, required, > 0
  bool operator==(const relay_options&) const = default;
};

struct network_options {
  netem::transfer_model model = netem::transfer_model::tcp;
  network_tcp_options tcp;
  std::vector<std::string> regions{"everywhere"};
  duration default_delay = 50ms; ///< one way, for pairs that no link names
  duration default_jitter{};
  std::vector<region_link> links; ///< from == to describes the inside of a region
  std::map<std::string, shared_link> shared_links;
  std::map<std::string, relay_options> relays;
  double hole_punching = 0.7;   ///< success probability for a suitable pair, [0, 1]
  duration detection_time = 5s; ///< time until peers notice a silent machine
  bool operator==(const network_options&) const = default;
};

/// Network coordinates of a group's hosts. All zero means no coordinates.
struct coordinate_options {
  duration x{}, y{}, height{};
  duration spread{}; ///< standard deviation of a host's x and y, drawn from the seed
  bool operator==(const coordinate_options&) const = default;
};

/// The role of a host in the swarm: a registered kind (scenarios/roles/) with its options.
struct role_choice : choice {
  role_choice(); ///< the default kind
  using choice::choice;
  const role_definition& definition() const;
};

/// A group of `count` equal hosts, named '<group>-0', '<group>-1', ... unless `names` is set.
struct peer_group {
  peer_group();
  peer_group(const peer_group&);
  peer_group(peer_group&&) noexcept;
  peer_group& operator=(const peer_group&);
  peer_group& operator=(peer_group&&) noexcept;
  ~peer_group();

  std::string name;        ///< the key in the file
  std::uint64_t count = 1; ///< default: the number of names
  std::vector<std::string> names;
  std::string region;          ///< default: the first region
  std::string line;            ///< preset for the line's missing options: lines.hpp
  data_rate up, down;          ///< required without `line`, > 0
  duration buffer{};           ///< the downlink's queue; 0: as `line`, or as the network
  path_options access;         ///< quality of each host's line, added to the path between regions
  over_time_options over_time; ///< changes of the line
  netem::nat_class nat = netem::nat_class::open;
  std::uint64_t hosts_per_line = 1; ///< consecutive hosts that share one line
  coordinate_options coordinates;
  role_choice role; ///< in the file, its options are keys of the group
  actors::conduct_options conduct;
  std::string device;       ///< required, a key of `devices`; auxiliary peers ignore it
  duration start{};         ///< when the first host starts, or its churn begins
  duration start_spacing{}; ///< delay between the starts of consecutive hosts
  duration boot_time{};     ///< from each start of a host until its actors run; not in a cluster
  bool absent = false;      ///< hosts start only by a 'join' fault
  churn_options churn;
  bool operator==(const peer_group&) const = default;
};

struct data_options {
  /// Paths or globs. load() resolves relative paths against the scenario's folder.
  std::vector<std::string> files{"/usr/share/common-licenses/*"};
  std::string field = "text";          ///< the key that holds the text in a file of JSON lines
  std::uint64_t shuffle_buffer = 0;    ///< windows in the buffer that shuffles them; 0: all windows
  double holdout = 0.1;                ///< fraction held out at the end of each file, (0, 0.5]
  std::string region;                  ///< region of the shard's host; default: the first
  data_rate up{1e9}, down{1e9};        ///< the shard host's link
  std::uint64_t prefetch_samples = 64; ///< most leased, unused samples per peer
  duration lease_time = 60s;           ///< a lease expires after this time without renewal
  std::uint64_t replicas = 1;          ///< shard hosts: shard-0 serves, and the next one takes over
  std::vector<std::string> names;      ///< names of the shard hosts; default: shard-0, shard-1, ...
  /// Regions of shard-1, shard-2, ...; further replicas are in `region`.
  std::vector<std::string> replica_regions;
  std::uint64_t corpus_samples = 0; ///< samples of the fixed corpus; 0: the run has none
  std::string corpus_root;          ///< 64 hexadecimal digits; empty: computed from the files
  actors::conduct_options conduct;  ///< the first `attackers` replicas have it
  std::uint64_t attackers = 1;
  bool operator==(const data_options&) const = default;
};

/// The workload of a run: a registered kind (scenarios/workloads/) with its options.
struct workload_choice : choice {
  workload_choice(); ///< the default kind
  using choice::choice;
  const workload_definition& definition() const;
};

/// The training method of a run: a registered kind (scenarios/methods/) with its options.
struct method_choice : choice {
  method_choice(); ///< the default kind
  using choice::choice;
  const method_definition& definition() const;
};

struct training_options {
  method_choice method;          ///< in the file, its options are keys of `training`
  std::uint64_t micro_batch = 8; ///< samples in one compute job
  std::uint64_t epochs = 0;      ///< epochs until the run stops; 0: only stop_time ends the run
  duration min_refresh = 200ms,
           max_refresh = 5s;      ///< bounds on how often a peer publishes and reads progress
  duration record_lifetime = 15s; ///< expiry of a progress record
  std::uint64_t max_uploads = 8;  ///< state downloads that a peer serves at once
  /// Path of a checkpoint, which load() makes absolute. Empty: the workload's initial state.
  std::string start_from;
  std::uint64_t checkpoint_every = 0; ///< epochs between checkpoints; 0: only the final one
  kernels::optimizer_config optimizer;
  bool operator==(const training_options&) const = default;
};

struct averaging_options {
  std::uint64_t group_size = 256; ///< maximum members of a group
  /// Grid such as '8x8' for methods with small groups. Default: the smallest square grid that
  /// holds all hosts.
  std::string grid;
  std::uint64_t min_group_size = 1; ///< a smaller group fails with 'group_too_small' and retries
  duration matchmaking_time = 5s;   ///< the leader waits at most this long for known peers
  duration round_timeout = 120s;    ///< a longer round fails
  duration sender_timeout = 10s;    ///< a reducer gives up a sender that is silent for this long
  /// A reducer refuses values whose norm is above so many times the median of the members' norms.
  /// 0: no limit.
  double max_norm_ratio = 1000;
  /// Largest piece of a part in one message. Without it: actors::piece_bytes(), and `largest_piece`
  /// where members may be attackers.
  std::optional<data_size> chunk_size;
  actors::part_split split = actors::part_split::adaptive;
  aggregator_choice aggregator;                      ///< how reducers combine contributions
  kernels::codec compression = kernels::codec::none; ///< codec from members to reducers
  /// Codec of the means that reducers return. Default: `compression`, or none if that is top_k.
  std::optional<kernels::codec> means_compression;
  double top_k_fraction = 0.01; ///< fraction of each piece's values that top_k keeps, (0, 1]
  /// Rank of PowerSGD, which averages gradients as low-rank matrices in two rounds. 0: off.
  std::uint64_t power_sgd_rank = 0;
  bool operator==(const averaging_options&) const = default;
};

enum class event_detail { all, rounds, none };
/// The formats of scenarios/export/, in its order.
enum class export_kind { perfetto, tensorboard, csv, openmetrics, pcapng };

struct record_options {
  event_detail events = event_detail::rounds;
  std::uint64_t peers = 0;           ///< with events 'all', number of sampled peers; 0: all peers
  duration metrics_interval = 1s;    ///< virtual time between two rows of metrics.csv
  std::uint64_t held_out_every = 10; ///< epochs between held-out losses; 0: only first and last
  std::uint64_t transfers = 200'000; ///< most transfers in transfers.jsonl.zst; 0: no file
  std::vector<export_kind> exports;  ///< formats that the run writes into its folder `export`
  duration export_every{};           ///< time of the run between two exports; 0: only at the end
  bool operator==(const record_options&) const = default;
};

/// Bounds that a metric of summary.json must meet for the run to succeed. At least one is set.
struct expectation {
  std::optional<double> min, max; ///< both inclusive
  bool operator==(const expectation&) const = default;
};

/// The program of the file: a registered kind (scenarios/programs/) with its options.
struct program_choice : choice {
  program_choice(); ///< the training program
  using choice::choice;
  const program_definition& definition() const;
  /// Whether the program reads the top-level key.
  bool reads(std::string_view key) const;
};

struct scenario {
  scenario();
  scenario(const scenario&);
  scenario(scenario&&) noexcept;
  scenario& operator=(const scenario&);
  scenario& operator=(scenario&&) noexcept;
  ~scenario();

  std::string name; ///< default: the file's stem
  std::string description;
  std::uint64_t seed = 1;
  std::string world = "sim";
  duration stop_time{}; ///< required: latest end of the run, virtual time
  network_options network;
  std::map<std::string, device_class> devices;
  std::vector<peer_group> peers; ///< in the file's order
  data_options data;
  workload_choice workload;
  training_options training;
  averaging_options averaging;
  security_options security;
  std::vector<fault> faults;
  double failpoints = 0; ///< probability of each branch of actors/failpoints.hpp
  record_options record;
  std::map<std::string, expectation> expect; ///< key: metric name
  program_choice program; ///< training, unless the file has another program's section
  bool operator==(const scenario&) const = default;
};

} // namespace shoal::scenarios
