// Puts together what the processes of a cluster wrote, each of its own host (observed_view::local):
// a round is counted once, by its group, and judged as the observers of a whole run judge it
// (round_book). Times are joined by UTC, so the hosts' clocks had better agree. A process that was
// killed left a directory without an end: what it has is used, and the peer counts as killed when
// it last said anything. One that ended in order, and says that its peer left, left its rounds
// then.
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

/// Errors: run.yaml is missing or no scenario; the message names it.
result<run_yaml> read_run_yaml(const std::filesystem::path& directory);

/// `path` is what the user called them all; each of `directories` is of one life of one node.
/// `running`: those of them that still write; what they have not said yet is waited for, not
/// missing. Errors: one is of a whole run, or of another scenario than the rest (says the first
/// difference); a file in one is damaged.
result<run_record> read_nodes(const std::filesystem::path& path,
                              const std::vector<std::filesystem::path>& directories,
                              const std::set<std::filesystem::path>& running = {});

} // namespace shoal::scenarios
