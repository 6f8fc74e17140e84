// A run directory told to a listener as the run would have told it: what is in its files, also
// those that a killed process left.
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

/// Tells all that is between the beginning and the end of the run in `directory`. `facts`: of its
/// run.yaml. Errors: a file in it is damaged.
result<void> tell_directory(const std::filesystem::path& directory, const run_facts& facts,
                            run_listener& into, const teller_of_notes& note);

/// A view of the run in `directory`, with a note for each thing that its files do not have.
/// Errors: it is none, or that of a program without a history; a file in it is damaged.
result<std::unique_ptr<run_view>> read_run_view(const std::filesystem::path& directory);

} // namespace shoal::scenarios
