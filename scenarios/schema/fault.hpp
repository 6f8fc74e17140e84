// The vocabulary of `faults:`. Its words keep the meanings of known tools. Impairments follow
// `tc netem`, and modes and directions follow chaos-mesh. Partition shapes and clock faults follow
// jepsen, and clogging follows FoundationDB. docs/failures.md says how each fault affects
// transfers and rounds under way.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/cut.hpp"
#include "netem/path_quality.hpp"
#include "scenarios/schema/rule.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// Loss in bursts, by the Gilbert-Elliott model. p = 0 means no bursts.
struct burst_options {
  double p = 0, r = 1;            ///< probability per packet: good to bad, bad to good
  double in_bad = 1, in_good = 0; ///< loss probability in each state
  bool operator==(const burst_options&) const = default;
};

/// The quality of a line, or of the path between two regions (netem/path_quality.hpp).
struct path_options {
  duration delay{};  ///< in one direction
  duration jitter{}; ///< uniform: half-width, at most `delay`; others: standard deviation
  netem::jitter_shape distribution = netem::jitter_shape::uniform;
  double correlation = 0; ///< between consecutive delays, [0, 1)
  double loss = 0;        ///< probability of independent packet loss, [0, 1)
  burst_options bursts;
  double duplicate = 0, reorder = 0; ///< probabilities
  data_rate flow_rate;               ///< limit of one connection; 0: no limit
  bool operator==(const path_options&) const = default;
};

/// Name prefix of the data shards: shard-0, and with data.replicas shard-1, ... A fault selects
/// shards only by a name or glob that starts with this prefix.
inline constexpr const char* shard_prefix = "shard-";

/// The first key of a fault. The enumerations below list the values of this key.
enum class fault_kind {
  kill,
  restart,
  join,
  pause,
  throttle,
  netem,
  partition,
  blackhole,
  swizzle_clog,
  clock
};

/// For kill and restart: the host loses its process (peers see connection resets) or its machine
/// (peers see silence).
enum class fault_scope { process, machine };
/// For join and pause.
enum class whole_host { host };
/// For throttle.
enum class line_part { both, up, down };
/// For partition.
enum class partition_shape { selected, minority_third, halves, majorities_ring, regions };
/// For clock: a jump, or a wrong speed.
enum class clock_fault { bump, skew };

/// How many of the selected hosts a fault strikes.
enum class fault_mode { all, one, fixed, fixed_percent, random_max_percent };

/// One entry of `faults:`. Examples:
///
///   {kill: machine, select: home-*, on: all_reduce.half_sent, nth: 2}
///
///   {restart: process, select: home-*, every: 1min, mode: fixed-percent, value: 2%, downtime: 10s}
///
///   {netem: both, select: home-*, at: 20min, duration: 60s, delay: 90ms, jitter: 30ms, loss: 2%}
///
///   {partition: minority-third, at: 10min, duration: 5min}
struct fault {
  fault_kind kind = fault_kind::kill;
  fault_scope scope = fault_scope::process;
  whole_host whole = whole_host::host;
  line_part line = line_part::both;
  /// For netem, blackhole and swizzle-clog.
  netem::traffic_direction direction = netem::traffic_direction::both;
  partition_shape shape = partition_shape::selected;
  clock_fault clock = clock_fault::bump;

  // The hosts that the fault strikes.
  std::string select;               ///< glob for host names; empty: all peers
  std::vector<std::string> regions; ///< regions of the hosts; empty: all regions
  fault_mode mode = fault_mode::all;
  double value = 0; ///< number of hosts (fixed), or a fraction (the percent modes)

  // The time of a strike: `at`, or each `every` from `at` on, or a probe.
  std::optional<duration> at, every, until;
  std::string on;         ///< probe name; the fault strikes the host that reached the probe
  std::uint64_t nth = 1;  ///< strike when selected hosts reach the probe for the nth time
  double probability = 1; ///< probability of each strike
  duration lasts{};       ///< key `duration`; 0: until the end of the run

  // The effect.
  duration downtime{};            ///< restart: time until the host starts again
  netem::traffic_direction cut{}; ///< partition: key `direction`
  data_rate rate;                 ///< throttle, netem: upper limit
  double factor = 0;              ///< throttle: fraction of the line's rate
  path_options path;              ///< netem: impairments
  duration ahead{}, behind{};     ///< clock bump: size of the jump
  double drift = 0;               ///< clock skew: 0.01 means one percent fast
  bool operator==(const fault&) const = default;
};

constexpr auto names_of(fault_kind) {
  using enum fault_kind;
  return std::array{enum_name<fault_kind>{kill, "kill"},
                    enum_name<fault_kind>{restart, "restart"},
                    enum_name<fault_kind>{join, "join"},
                    enum_name<fault_kind>{pause, "pause"},
                    enum_name<fault_kind>{throttle, "throttle"},
                    enum_name<fault_kind>{netem, "netem"},
                    enum_name<fault_kind>{partition, "partition"},
                    enum_name<fault_kind>{blackhole, "blackhole"},
                    enum_name<fault_kind>{swizzle_clog, "swizzle-clog"},
                    enum_name<fault_kind>{clock, "clock"}};
}
constexpr auto names_of(fault_scope) {
  return std::array{enum_name<fault_scope>{fault_scope::process, "process"},
                    enum_name<fault_scope>{fault_scope::machine, "machine"}};
}
constexpr auto names_of(whole_host) {
  return std::array{enum_name<whole_host>{whole_host::host, "host"}};
}
constexpr auto names_of(line_part) {
  return std::array{enum_name<line_part>{line_part::both, "both"},
                    enum_name<line_part>{line_part::up, "up"},
                    enum_name<line_part>{line_part::down, "down"}};
}
constexpr auto names_of(netem::traffic_direction) {
  using netem::traffic_direction;
  return std::array{enum_name<traffic_direction>{traffic_direction::both, "both"},
                    enum_name<traffic_direction>{traffic_direction::to, "to"},
                    enum_name<traffic_direction>{traffic_direction::from, "from"}};
}
constexpr auto names_of(partition_shape) {
  using enum partition_shape;
  return std::array{enum_name<partition_shape>{selected, "selected"},
                    enum_name<partition_shape>{minority_third, "minority-third"},
                    enum_name<partition_shape>{halves, "halves"},
                    enum_name<partition_shape>{majorities_ring, "majorities-ring"},
                    enum_name<partition_shape>{regions, "regions"}};
}
constexpr auto names_of(clock_fault) {
  return std::array{enum_name<clock_fault>{clock_fault::bump, "bump"},
                    enum_name<clock_fault>{clock_fault::skew, "skew"}};
}
constexpr auto names_of(fault_mode) {
  using enum fault_mode;
  return std::array{enum_name<fault_mode>{all, "all"}, enum_name<fault_mode>{one, "one"},
                    enum_name<fault_mode>{fixed, "fixed"},
                    enum_name<fault_mode>{fixed_percent, "fixed-percent"},
                    enum_name<fault_mode>{random_max_percent, "random-max-percent"}};
}

inline const char* action_name(fault_kind kind) {
  for (const auto& [candidate, name] : names_of(fault_kind{}))
    if (candidate == kind) return name;
  return "";
}

/// Calls `visit` with the member that holds the value of the fault's first key.
template <class Fault, class Visit>
void with_action_value(Fault& f, Visit visit) {
  switch (f.kind) {
  case fault_kind::kill:
  case fault_kind::restart:
    return visit(f.scope);
  case fault_kind::join:
  case fault_kind::pause:
    return visit(f.whole);
  case fault_kind::throttle:
    return visit(f.line);
  case fault_kind::netem:
  case fault_kind::blackhole:
  case fault_kind::swizzle_clog:
    return visit(f.direction);
  case fault_kind::partition:
    return visit(f.shape);
  case fault_kind::clock:
    return visit(f.clock);
  }
}

} // namespace shoal::scenarios
