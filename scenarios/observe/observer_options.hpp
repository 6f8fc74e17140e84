// Facts that the runner gives to a run's observers, at the begin and at the end of the run.
#pragma once

#include "actors/ids.hpp"
#include "actors/reachability/reach.hpp"
#include "scenarios/observe/event_log.hpp"
#include "scenarios/observe/invariants.hpp"
#include "scenarios/observe/metrics.hpp"
#include "scenarios/observe/names.hpp"
#include "scenarios/observe/rounds.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/observe/run_listener.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/observe/transfer_log.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct observer_options {
  std::string scenario; ///< the name of the scenario
  std::uint64_t seed = 1;
  std::string world = "sim";
  record_options record;
  /// Machines that are peers; record.peers samples from these.
  std::vector<std::uint32_t> peer_machines;
  /// The machine and the incarnation of a host of the fabric. Called once for each host, possibly
  /// from on_event.
  host_names::identify identify;
  /// The name of a link of the fabric. Empty: no transfers.jsonl.zst is written.
  transfer_log::link_names link_name;
  /// Bytes sent so far by traffic class (data, averaging, state, control); may be empty.
  std::function<std::array<std::uint64_t, 4>()> bytes_sent;
  /// Counts of the network between real hosts; empty in a world that has no such network.
  std::function<wire_counts()> wire;
  /// The true reachability of a peer's machine; empty where all machines are open.
  std::function<actors::reach(std::uint32_t machine)> true_reach;
  /// The region of a machine, for traffic.csv. Empty: no traffic.csv is written. Called once for
  /// each machine, possibly from on_event.
  std::function<std::string(std::uint32_t machine, const std::string& name)> region_of;
  /// Called for each member whose data is in a final round's result, with the number of the
  /// member's samples. May be empty.
  std::function<void(const swarm_round& round, std::uint64_t samples)> on_contribution;
  /// The name of a data shard, or of a peer in another process; empty if it is not known. May be
  /// empty.
  std::function<std::string(actors::peer_id)> name_of_peer;
  run_listener* listener = nullptr; ///< hears the lines and facts of the run directory; may be null
  invariant_options invariants;
  std::optional<std::uint64_t> epochs_planned;      ///< the epoch at which training ends
  duration round_grace = std::chrono::seconds(120); ///< see round_book
  observed_view view = observed_view::whole;
};

/// The options for the process of one host, from those for the whole run. The process observes the
/// peer of that host, if there is one, and no other peer.
observer_options local_view_of(observer_options whole, std::optional<std::uint32_t> peer_machine);

/// Facts that only the runner knows, at the end.
struct end_facts {
  duration time{};
  double wall_seconds = 0;
  bool deterministic = true; ///< false: no event hash (any world but sim)
  std::optional<std::string> state_hash;
  summary::losses loss; ///< a missing loss is taken from on_held_out_loss
  leak_facts leaks;
  std::optional<actors::state_id> leading; ///< the state that the run ends with
};

} // namespace shoal::scenarios
