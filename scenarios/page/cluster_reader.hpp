// The directories of a cluster's processes as one run: each host by itself told of its own peer,
// shard, rounds and bytes; here they are put on one clock (UTC), and rounds are counted once and
// judged as those of a whole run (scenarios/compare/run_nodes.hpp).
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/page/run_view.hpp"

#include <filesystem>
#include <memory>
#include <vector>

namespace shoal::scenarios {

/// Whether a process of a cluster wrote `directory`.
bool is_node_directory(const std::filesystem::path& directory);

/// Whether its process still writes there: it has not ended, and its files are not older than 30 s,
/// or three rows of its metrics.
bool still_writes(const std::filesystem::path& directory);

struct node_directory {
  std::filesystem::path path;
  bool running = false; ///< it still writes: whoever reads it again finds more
};

/// `folder` is what the user called them all. The view has a section of nodes, and is 'running' as
/// long as one of them is. Errors: they are not of one run; a file is damaged.
result<std::unique_ptr<run_view>> read_cluster_view(const std::filesystem::path& folder,
                                                    const std::vector<node_directory>& nodes);

} // namespace shoal::scenarios
