// Runs a case, and says what is wrong with it; makes one that fails smaller.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/chaos/chaos_case.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct chaos_result {
  std::vector<std::string> problems; ///< a sentence each: invariants, what did not heal, what
                                     ///< stopped the run; empty: fine
  double virtual_seconds = 0,
         core_seconds = 0; ///< of a core, whoever else may have had it meanwhile
  std::uint64_t epochs = 0;
  std::map<std::string, std::uint64_t> faults; ///< by kind, hosts struck, each time counted
  std::map<std::string, std::uint64_t> points; ///< of actors/probes.hpp, how often each was reached
  std::map<std::string, std::uint64_t>
      failpoints; ///< branches of actors/failpoints.hpp, how often each was taken
  std::map<std::string, std::uint64_t> reasons; ///< of rounds that were not ok
  std::string event_hash;                       ///< of the whole history, if asked for

  bool operator==(const chaos_result&) const = default;
};

/// Never fails: that a case is no scenario is a problem, too.
/// `conduct` of all hosts is a name of actors::conducts().
chaos_result run_case(const chaos_case& what, const std::string& conduct = "honest");

/// Leaves out faults, then groups, then hosts, while `fails` says so of what is left; asks it at
/// most `most` times.
chaos_case shrink(chaos_case what, const std::function<bool(const chaos_case&)>& fails,
                  unsigned most = 60);

std::string to_json(const chaos_result& what);
result<chaos_result> chaos_result_from_json(std::string_view text);

} // namespace shoal::scenarios
