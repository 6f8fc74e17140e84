// What run.yaml says about the run that wrote it, besides the scenario: the key `x-run`, which
// loading a scenario ignores.
//   x-run: {shoal: 0.1.0, build: 9f2c28a, data_digest: "9f…", until: 90s, interrupted: true}
// That of a process of a cluster says which one it is and when its time 0 was; it is written when
// the process begins.
//   x-run: {shoal: 0.1.0, data_digest: "9f…", node: lab-3, group: lab, started_utc_ns:
//   1790000000000000000, address: "10.0.0.4:7000",
//           invitation: "shoal node s.yaml", insecure: true}
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"
#include "scenarios/schema/document.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace shoal::scenarios {

struct provenance {
  std::string shoal;             ///< version of the program; empty: not said
  std::string data_digest;       ///< of the training data; empty: the workload had none
  std::optional<duration> until; ///< --until, if it was given
  bool interrupted = false;      ///< ended early by a signal
  std::string build{};           ///< commit of its sources; empty: not known
  std::string
      node{}; ///< of a process of a cluster: its host's name; empty: the run had one process
  std::optional<std::int64_t>
      started_utc_ns{};  ///< the moment that its times count from; not in virtual time
  std::string group{};   ///< of such a process: whose options it has; empty: its name says so
  std::string address{}; ///< where others dial it; empty: they cannot
  std::string joins{};   ///< whom it dialled itself, addresses with a space between
  std::string
      invitation{}; ///< the command line with which others join, without what each says for itself
  bool insecure = false; ///< without keys
  bool operator==(const provenance&) const = default;
};

/// The line for run.yaml, with a newline before and after it.
std::string to_yaml(const provenance& what);

/// Of a parsed run.yaml; empty without `x-run`. Unknown keys in it are ignored: other versions may
/// write more. Errors: a value of the wrong kind.
result<provenance> provenance_of(const document& run_yaml);

/// A note if the runs `a` and `b`, called so, did not train on the same data; one of them may have
/// had none (`timing`).
std::optional<std::string> data_differ(const provenance& a, std::string_view name_a,
                                       const provenance& b, std::string_view name_b);

} // namespace shoal::scenarios
