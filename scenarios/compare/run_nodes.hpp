// Combines the run directories of the processes of a cluster into one record. Each process has
// observed its own host only (observed_view::local). A round counts once, by its group, and
// round_book judges it as in a whole run. Times are joined by UTC, so the hosts' clocks have to
// agree.
//
// The directory of a killed process has no summary. Its files are used as far as they go, and its
// peer counts as killed at the last observation. If a process ended in order and its peer left, the
// peer has left all its rounds at that time.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/compare/run_record.hpp"

#include <filesystem>
#include <set>
#include <vector>

namespace shoal::scenarios {

struct run_yaml {
  document options;
  provenance made_by;
};

/// Errors: run.yaml is missing or no scenario; the message names the file.
result<run_yaml> read_run_yaml(const std::filesystem::path& directory);

/// `path`: the name of the cluster's run as the user gave it. `directories`: one for each
/// incarnation of each node. `running`: the directories whose processes still write; their missing
/// observations are not treated as losses. Errors: a directory is of a whole run, or of another
/// scenario than the rest (the message names the first difference); a file is damaged.
result<run_record> read_nodes(const std::filesystem::path& path,
                              const std::vector<std::filesystem::path>& directories,
                              const std::set<std::filesystem::path>& running = {});

} // namespace shoal::scenarios
