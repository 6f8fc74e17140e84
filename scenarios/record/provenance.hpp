// Facts in run.yaml about the run that wrote the file, besides the scenario. They are the key
// `x-run`, which loading a scenario ignores:
//   x-run: {shoal: 0.1.0, build: 9f2c28a, data_digest: "9f…", until: 90s, interrupted: true}
// A process of a cluster writes the key when it begins. The key then also names the process and the
// moment of its time 0:
//   x-run: {shoal: 0.1.0, data_digest: "9f…", node: lab-3, group: lab,
//           started_utc_ns: 1790000000000000000, address: "10.0.0.4:7000",
//           invitation: "shoal node s.yaml", insecure: true}
// A run that continues another one from a moment with another seed says from when:
//   x-run: {shoal: 0.1.0, data_digest: "9f…", seed_after: "12min 7"}
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"
#include "scenarios/schema/document.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

/// A moment of a run in virtual time from which all its random streams have another seed.
struct run_branch {
  duration at{}; ///< events at this time and later have the new seed
  std::uint64_t seed = 0;
  bool operator==(const run_branch&) const = default;
};

/// The branches in words: '12min 7, 15min 9'.
std::string to_text(const std::vector<run_branch>& what);
/// Reads them. Errors: no time, no seed, or a time before that of the previous branch.
result<std::vector<run_branch>> parse_branches(std::string_view text);

struct provenance {
  std::string shoal;             ///< version of the program; empty: unknown
  std::string data_digest;       ///< digest of the training data; empty: the workload had none
  std::optional<duration> until; ///< the option --until, if it was given
  bool interrupted = false;      ///< a signal ended the run early
  std::string build{};           ///< commit of the program's sources; empty: unknown
  /// In a cluster, the name of the process's host. Empty: the run had one process.
  std::string node{};
  /// The UTC time at which the run's times are 0. Empty in virtual time.
  std::optional<std::int64_t> started_utc_ns{};
  /// In a cluster, the group of peers whose options the process has. Empty: the name tells the
  /// group.
  std::string group{};
  std::string address{}; ///< the address at which others dial the process; empty: they cannot
  std::string joins{};   ///< the addresses that the process dialled itself, separated by a space
  /// The command line with which other hosts join, without the options that differ for each host.
  std::string invitation{};
  bool insecure = false;              ///< the run has no keys
  std::vector<run_branch> branches{}; ///< in the order of their times
  bool operator==(const provenance&) const = default;
};

/// The text of x-run for run.yaml, with a newline before and after it.
std::string to_yaml(const provenance& what);

/// The provenance in a parsed run.yaml; empty without `x-run`. Unknown keys in `x-run` are ignored:
/// other versions may write more. Errors: a value of the wrong kind.
result<provenance> provenance_of(const document& run_yaml);

/// A note if the runs `a` and `b`, named `name_a` and `name_b`, did not train on the same data. One
/// run may have had no data (`timing`).
std::optional<std::string> data_differ(const provenance& a, std::string_view name_a,
                                       const provenance& b, std::string_view name_b);

} // namespace shoal::scenarios
