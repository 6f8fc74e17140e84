// Replays a run directory to a listener, like the run itself would call the listener. The reader
// also accepts the files of a killed process.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/page/run_facts.hpp"
#include "scenarios/page/run_view.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace shoal::scenarios {

using teller_of_notes = std::function<void(std::string)>;

/// Replays the run in `directory`, except its beginning and end. `facts` come from its run.yaml.
/// Errors: a damaged file.
result<void> tell_directory(const std::filesystem::path& directory, const run_facts& facts,
                            run_listener& into, const teller_of_notes& note);

/// Returns a view of the run in `directory`, with a note for each missing file or column.
/// Errors: not a run directory, a program without a history, or a damaged file.
result<std::unique_ptr<run_view>> read_run_view(const std::filesystem::path& directory);

} // namespace shoal::scenarios
