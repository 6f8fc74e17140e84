// Directories of studies beside those of training runs: they hold no history, no samples and no
// rounds.
#pragma once

#include "kernels/base/result.hpp"

#include <filesystem>
#include <string_view>

namespace shoal::scenarios {

/// Whether `directory` can hold a training run, so that `what` ('a replay') can be had of it.
/// Anything that is not surely a study's is left to those who read it. Errors: its run.yaml is that
/// of a study.
result<void> refuse_study(const std::filesystem::path& directory, std::string_view what);

} // namespace shoal::scenarios
