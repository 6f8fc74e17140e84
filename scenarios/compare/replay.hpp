// Running a run again: what is needed for it from its directory, and whether the second time was
// the same. Another version's run is replayed with a warning that says what changed; it is refused
// only if its run.yaml has something that this version does not know.
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
  std::optional<std::string> state; ///< nothing for workloads without numbers
  bool operator==(const run_hashes&) const = default;
};

struct replay_plan {
  scenario what;
  provenance made_by;
  run_hashes recorded;
  std::vector<std::string> notes; ///< what may make a difference, known before running
};

/// Errors: run.yaml or summary.json is missing or damaged; this version cannot read the scenario;
/// the run was interrupted; it was in real time, where no two histories are alike.
/// `build` is this program's.
result<replay_plan> plan_replay(const std::filesystem::path& directory,
                                std::string_view build = {});

/// A note if the training data are not those of the run. `digest_now`: of the workload as prepared.
std::optional<std::string> data_note(const provenance& made_by, const std::string& digest_now);

struct replay_verdict {
  bool same = false;
  std::string text; ///< lines, ending in a newline
};
replay_verdict judge_replay(const run_hashes& recorded, const run_hashes& now);

} // namespace shoal::scenarios
