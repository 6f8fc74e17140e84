// The history of a run, read from its directory, as exports to other programs need it. It has the
// phases of each host, the rounds, the faults, the transfers, the messages and the metrics.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"
#include "scenarios/record/explain.hpp"
#include "scenarios/record/run_files.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// A time in which a host did one thing.
struct recorded_span {
  std::size_t host = 0; ///< index in recorded_run::hosts
  std::string what;     ///< 'computing', or 'ok' for a member's round
  duration begin{}, end{};
  std::uint64_t epoch = 0;
  std::string group{}, reason{}; ///< empty for a phase
};

struct recorded_round_span {
  std::uint64_t epoch = 0, members = 0, samples = 0;
  std::string group, outcome, reason;
  duration begin{}, end{};
};

struct recorded_fault {
  std::string action;
  std::vector<std::string> hosts;
  duration begin{}, end{}; ///< equal for a fault without duration
};

/// A delivered message. Only a run with `record.events: all` has them.
struct recorded_message {
  std::string from, to, type; ///< actors like 'home-3#0/2'
  std::uint64_t bytes = 0;
  duration sent{}, arrives{};
};

struct recorded_run {
  std::filesystem::path directory;
  std::string name;               ///< the scenario's name
  std::vector<std::string> hosts; ///< in the order of their first appearance
  std::vector<recorded_span> phases, member_rounds;
  std::vector<recorded_round_span> rounds;
  std::vector<recorded_fault> faults;
  std::vector<explained_transfer> transfers;
  std::vector<recorded_message> messages;
  metric_table metrics;
  duration end{};

  /// The index of the host of `actor` ('home-3#0/2' or 'home-3'). Requires: the host is known.
  std::size_t host_of(const std::string& actor) const;

  std::map<std::string, std::size_t> index_of_host; ///< index in `hosts`, by name
};

/// Reads a run directory. A run that was killed is read as far as it goes. A run without a log of
/// transfers has none here. Errors: `directory` is no run directory, or a file cannot be read.
result<recorded_run> read_recorded_run(const std::filesystem::path& directory);

} // namespace shoal::scenarios
