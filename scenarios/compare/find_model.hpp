// Finds the model that a run left.
#pragma once

#include "kernels/base/result.hpp"

#include <filesystem>

namespace shoal::scenarios {

/// `path` itself if it is a file, else the final.ckpt in that directory. The function does not read
/// the model. Errors: there is no such file; by its run.yaml the run trains no model.
result<std::filesystem::path> model_file(const std::filesystem::path& path);

} // namespace shoal::scenarios
