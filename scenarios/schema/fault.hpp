// The vocabulary of `faults:`. Words and meanings follow what people know: netem's impairments from
// `tc netem`, modes and directions from chaos-mesh, shapes of partitions and clock faults from
// jepsen, clogging from FoundationDB. What each does to what is under way: docs/failures.md.
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

/// Losses in bursts (Gilbert and Elliott); p = 0: none.
struct burst_options {
  double p = 0, r = 1;            ///< a packet turns the good state bad, the bad one good
  double in_bad = 1, in_good = 0; ///< a packet is lost there
  bool operator==(const burst_options&) const = default;
};

/// What a line or the way between two regions does to messages: netem/path_quality.hpp.
struct path_options {
  duration delay{};  ///< one way
  duration jitter{}; ///< uniform: +- this, at most delay; others: standard deviation
  netem::jitter_shape distribution = netem::jitter_shape::uniform;
  double correlation = 0; ///< [0, 1)
  double loss = 0;        ///< of packets, independent, [0, 1)
  burst_options bursts;
  double duplicate = 0, reorder = 0; ///< probabilities
  data_rate flow_rate;               ///< most that one connection gets; 0: no limit
  bool operator==(const path_options&) const = default;
};

/// The hosts beside the peers that a fault can select, by names or globs that begin so: shard-0,
/// and with data.replicas shard-1, ...
inline constexpr const char* shard_prefix = "shard-";

/// The first key of a fault; the enumerator beside it says what its value is.
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

/// kill, restart. What ends with a host: its process (others see the connection reset) or the
/// machine (silence).
enum class fault_scope { process, machine };
/// join, pause.
enum class whole_host { host };
/// throttle.
enum class line_part { both, up, down };
/// partition.
enum class partition_shape { selected, minority_third, halves, majorities_ring, regions };
/// clock: one jump, or a wrong speed.
enum class clock_fault { bump, skew };

/// How many of the selected hosts are struck.
enum class fault_mode { all, one, fixed, fixed_percent, random_max_percent };

/// One entry of `faults:`
///   {kill: machine, select: home-*, on: all_reduce.half_sent, nth: 2}
///   {restart: process, select: home-*, every: 1min, mode: fixed-percent, value: 2%, downtime: 10s}
///   {netem: both, select: home-*, at: 20min, duration: 60s, delay: 90ms, jitter: 30ms,
///   distribution: normal, loss: 2%} {partition: minority-third, at: 10min, duration: 5min}
struct fault {
  fault_kind kind = fault_kind::kill;
  fault_scope scope = fault_scope::process;
  whole_host whole = whole_host::host;
  line_part line = line_part::both;
  netem::traffic_direction direction =
      netem::traffic_direction::both; ///< netem, blackhole, swizzle-clog
  partition_shape shape = partition_shape::selected;
  clock_fault clock = clock_fault::bump;

  // Whom.
  std::string select;               ///< glob over host names; empty: all peers
  std::vector<std::string> regions; ///< only hosts there; empty: everywhere
  fault_mode mode = fault_mode::all;
  double value = 0; ///< of fixed (hosts), fixed-percent and random-max-percent (a fraction)

  // When: at `at`; every `every`, first at `at`; or on a probe.
  std::optional<duration> at, every, until;
  std::string on;         ///< probe name; strikes the host that reached it
  std::uint64_t nth = 1;  ///< the n-th time that a selected host reaches `on`
  double probability = 1; ///< each time
  duration lasts{};       ///< key `duration`; 0: until the run ends

  // What.
  duration downtime{};            ///< restart: how long it is away
  netem::traffic_direction cut{}; ///< partition: key `direction`
  data_rate rate;                 ///< throttle, netem: at most this
  double factor = 0;              ///< throttle: this share of what the line has
  path_options path;              ///< netem
  duration ahead{}, behind{};     ///< clock: bump
  double drift = 0;               ///< clock: skew; 0.01: one percent fast
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

/// Calls `visit` with the member that the value of the first key is about.
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
