// Directories of programs that run without the runner (scenarios/programs/program.hpp). They hold
// no history, no samples and no rounds.
#pragma once

#include "kernels/base/result.hpp"

#include <filesystem>
#include <string_view>

namespace shoal::scenarios {

/// Checks that `directory` can hold the history of a run. Error messages call the command
/// `what` ('replay'). Errors: the run.yaml is that of a program without a history.
result<void> require_history(const std::filesystem::path& directory, std::string_view what);

} // namespace shoal::scenarios
