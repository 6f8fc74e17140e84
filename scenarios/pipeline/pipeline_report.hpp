// Runs a pipeline as the options of the program 'pipeline' say, and reports its figures.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/programs/pipeline.hpp"
#include "scenarios/programs/program_run.hpp"

#include <cstdint>
#include <string>

namespace shoal::scenarios {

/// Errors: text that cannot be read; sizes that make no model.
result<program_outcome> run_pipeline(const std::string& name, const pipeline_options& what,
                                     std::uint64_t seed, const program_hooks& hooks);

} // namespace shoal::scenarios
