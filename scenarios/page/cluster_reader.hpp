// Combines the directories of a cluster's processes into one run. Each process recorded only its
// own peer or shard, rounds and bytes. The reader puts all records on one clock (UTC). It counts
// each round once, and judges rounds like those of a whole run (scenarios/compare/run_nodes.hpp).
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/page/run_view.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

namespace shoal::scenarios {

/// Returns true if a process of a cluster wrote `directory`.
bool is_node_directory(const std::filesystem::path& directory);

/// Returns true if a process still writes `directory`. Such a process has not ended, and its files
/// are not older than 30 s or three rows of its metrics.
bool still_writes(const std::filesystem::path& directory);

struct node_directory {
  std::filesystem::path path;
  bool running = false; ///< the process still writes, so that a later read finds more
};

/// A host that writes no directory here. Other hosts have told what is known about it.
struct distant_node {
  run_view::node shown; ///< `began` and `last` are not used
  std::int64_t came_utc_ns = 0, seen_utc_ns = 0;
};

/// Returns a view of the whole cluster, with a section of nodes. `folder` is the user's name for
/// the directories. The view is 'running' while a node is running. A node with a directory has no
/// second row for what others tell of it. Errors: directories of different runs, or a damaged file.
result<std::unique_ptr<run_view>> read_cluster_view(const std::filesystem::path& folder,
                                                    const std::vector<node_directory>& nodes,
                                                    const std::vector<distant_node>& distant = {});

} // namespace shoal::scenarios
