// What has to be true of a scenario as a whole: names that exist, numbers that fit together, a
// target that can be reached. Values that could not be read are passed over, so that one mistake is
// reported once.
#pragma once

#include "scenarios/schema/reader.hpp"

#include <span>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// Points in the protocols at which a fault may strike.
std::span<const std::string> known_probes();

/// Metrics of summary.json that `expect` may name.
std::span<const std::string> known_metrics();

/// Appends what is wrong with a training run to `problems`. `folder`: where relative paths begin.
void check_training(const scenario& what, const source_map& sources, const std::string& folder,
                    std::vector<problem>& problems);

/// Appends errors and warnings to `problems`: those of the file's program, and sections that this
/// program does not read.
void check_scenario(const scenario& what, const source_map& sources, const std::string& folder,
                    std::vector<problem>& problems);

/// `path` itself if it is absolute, else inside `folder`.
std::string path_from(const std::string& folder, const std::string& path);

} // namespace shoal::scenarios
