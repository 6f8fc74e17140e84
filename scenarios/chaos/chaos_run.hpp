// Runs a case and lists its problems. A failing case can be shrunk.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/chaos/chaos_case.hpp"
#include "scenarios/record/provenance.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct chaos_result {
  /// One sentence for each violated invariant, each peer that did not heal, and an error that
  /// stopped the run. Empty: the case passed.
  std::vector<std::string> problems;
  double virtual_seconds = 0;
  double core_seconds = 0; ///< processor time of the run
  std::uint64_t epochs = 0;
  std::map<std::string, std::uint64_t> faults;     ///< struck hosts, by kind of fault
  std::map<std::string, std::uint64_t> points;     ///< hits, by probe (actors/probes.hpp)
  std::map<std::string, std::uint64_t> failpoints; ///< hits, by failpoint (actors/failpoints.hpp)
  std::map<std::string, std::uint64_t> reasons;    ///< rounds that were not ok, by reason
  std::uint64_t accusations = 0; ///< messages of members that no correct peer sends
  std::uint64_t bans = 0;        ///< hosts that banned a member; honest ones are a problem
  std::string event_hash;        ///< hash of the whole history
  /// Virtual time of the first violation of an invariant, in seconds; empty if there is none.
  std::optional<double> violated_seconds;
  bool branched = false; ///< the case reached the moment of its branch

  bool operator==(const chaos_result&) const = default;
};

/// Runs a case. A case that is no valid scenario gives a result with a problem. `conduct` is a name
/// of actors::conducts(), and all hosts have it. If it is empty, each host has its group's conduct.
/// With a branch, all random streams have its seed from its moment on.
chaos_result run_case(const chaos_case& what, const std::string& conduct = "",
                      const std::optional<run_branch>& branch = {});

/// Leaves out faults, then groups, then hosts, as long as `fails` returns true for the rest. Calls
/// `fails` at most `most` times.
chaos_case shrink(chaos_case what, const std::function<bool(const chaos_case&)>& fails,
                  unsigned most = 60);

std::string to_json(const chaos_result& what);
result<chaos_result> chaos_result_from_json(std::string_view text);

} // namespace shoal::scenarios
