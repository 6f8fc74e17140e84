// Holds the histories of two runs of any worlds against each other, step by step. One may be a
// simulation, and the other the same swarm on real connections. `shoal compare` judges the totals
// of two runs, and `shoal diff` looks for the first event that differs. This comparison says in
// which phase of which step the times part.
//
// A step ends when the last round of its epoch that a member completed ends. It begins where the
// step before ends. Its time splits in two ways:
//   step = wait + round          until the group closes, and until the last member has its result
//   step = sum over phases of a host's time in the phase, in the mean over the hosts that are there
// Bytes at a time are interpolated between rows of metrics.csv. So with rows far apart, bytes of
// single steps are rough, and their sum is right.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/compare/run_record.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shoal::scenarios {

struct step_trace {
  std::uint64_t epoch = 0;
  double begin = 0, end = 0; ///< seconds since the run began
  double wait = 0, round = 0;
  std::uint64_t rounds = 0;  ///< rounds of this epoch, with the failed ones
  std::uint64_t members = 0; ///< members of the completed rounds
  std::uint64_t samples = 0;
  std::string outcome, reason;          ///< how the last round ended
  std::map<std::string, double> phases; ///< seconds by phase; empty if the run did not record them
  std::array<double, 4> bytes{};        ///< data, averaging, state, control

  double seconds() const noexcept { return end - begin; }
};

/// The steps of a run in order. Errors: a file of the run is damaged.
result<std::vector<step_trace>> read_steps(const run_record& of);

/// A figure over the steps that both runs have.
struct traced_figure {
  std::string section, name, unit; ///< unit: 's', 'bytes' or empty
  double a = 0, b = 0;             ///< medians over the steps
  /// The median of b / a over the steps, and where nine tenths of it are; empty if `a` is 0 in each
  /// step.
  std::optional<double> ratio{}, low{}, high{};
};

struct trace_difference {
  run_record a, b;
  std::string name_a, name_b; ///< the worlds, or A and B if both have the same
  std::vector<std::pair<step_trace, step_trace>> steps; ///< steps of the common epochs
  std::vector<traced_figure> figures;
  std::vector<std::string> notes;

  /// The `most` steps whose times are furthest apart, the furthest first.
  std::vector<std::size_t> furthest(std::size_t most) const;
};

/// Errors: one side has no run or a damaged one; the runs have no step in common.
result<trace_difference> diff_traces(const std::filesystem::path& a,
                                     const std::filesystem::path& b);

/// The difference for people, with the `most` steps that are furthest apart.
std::string to_text(const trace_difference& what, std::size_t most = 5);
/// All steps of both runs.
std::string to_json(const trace_difference& what);

} // namespace shoal::scenarios
