// The rounds of a run that are worth looking at: those that failed or lost samples, and the
// slowest.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct notable_round {
  std::uint64_t epoch = 0, members = 0, samples = 0;
  std::string group, outcome, reason;
  duration begun{}, lasted{};
  std::string why; ///< 'slowest', 'failed', 'partial' or 'split'
};

struct notable_rounds_list {
  std::vector<notable_round> rounds; ///< ascending by begin
  std::uint64_t of = 0;              ///< rounds in the run
};

/// Picks at most `most` rounds: in turn the slowest that ended well, the longest that failed, that
/// were split and that were partial. Errors: `run` has no log of events or no rounds.
result<notable_rounds_list> notable_rounds(const std::filesystem::path& run, std::size_t most = 5);

/// A table with the command that explains each round. `run` is the directory as the user typed it.
std::string to_text(const notable_rounds_list& what, const std::string& run);
std::string to_json(const notable_rounds_list& what);

} // namespace shoal::scenarios
