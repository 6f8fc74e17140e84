// Checks of a scenario as a whole: names exist, numbers are consistent, and the goal is reachable.
// The checks skip invalid values, so that one mistake is reported once.
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

/// Appends errors and warnings about a training run to `problems`. Relative paths start at
/// `folder`.
void check_training(const scenario& what, const source_map& sources, const std::string& folder,
                    std::vector<problem>& problems);

/// Appends errors and warnings to `problems`. They come from the file's program, and from sections
/// that this program does not read.
void check_scenario(const scenario& what, const source_map& sources, const std::string& folder,
                    std::vector<problem>& problems);

/// Returns `path` if it is absolute, else `path` inside `folder`.
std::string path_from(const std::string& folder, const std::string& path);

} // namespace shoal::scenarios
