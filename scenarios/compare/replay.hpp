// Prepares the replay of a run from its directory, and checks whether the replay equals the run. A
// run of another version is replayed with a warning that says what changed. It is refused only if
// its run.yaml has something that this version does not know.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/record/provenance.hpp"
#include "scenarios/schema/scenario.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

struct run_hashes {
  std::string event;                ///< hexadecimal
  std::optional<std::string> state; ///< empty for workloads without numbers
  bool operator==(const run_hashes&) const = default;
};

struct replay_plan {
  scenario what;
  provenance made_by;
  run_hashes recorded;
  std::vector<std::string> notes; ///< warnings before the replay: reasons why it may differ
};

/// Errors: run.yaml or summary.json is missing or damaged; this version cannot read the scenario;
/// the run was interrupted; the run was in real time, where no two histories are equal.
/// `build`: the commit of this program's sources.
result<replay_plan> plan_replay(const std::filesystem::path& directory,
                                std::string_view build = {});

/// A run that continues a recorded run from one of its moments.
struct branch_plan {
  replay_plan run; ///< the recorded run, with its scenario and its branches
  /// The branches of the continued run: those of the recorded run up to the moment, then the new
  /// one if there is a new seed.
  std::vector<run_branch> branches;
  /// True without a new seed, and if the run can end where the recorded one did: both hashes have
  /// to be the same.
  bool same_future = false;
};

/// Prepares the continuation of the run in `directory` from the moment `from`. Its future has the
/// random numbers of `seed_after`, or those of the recorded run. Errors: those of plan_replay(),
/// but an interrupted run can be continued; `from` is not within the run.
result<branch_plan> plan_branch(const std::filesystem::path& directory, duration from,
                                std::optional<std::uint64_t> seed_after,
                                std::string_view build = {});

/// The rows that two files metrics.csv have before the time `until`.
struct common_past {
  std::size_t rows = 0;             ///< rows that are the same
  std::optional<std::string> first; ///< the time of the first row that differs, in seconds
};
/// Errors: a file cannot be read.
result<common_past> compare_past(const std::filesystem::path& a, const std::filesystem::path& b,
                                 duration until);

/// A note if the training data differ from those of the run. `digest_now`: the digest of the
/// workload's data as prepared now.
std::optional<std::string> data_note(const provenance& made_by, const std::string& digest_now);

struct replay_verdict {
  bool same = false;
  std::string text; ///< lines, ending in a newline
};
replay_verdict judge_replay(const run_hashes& recorded, const run_hashes& now);

} // namespace shoal::scenarios
