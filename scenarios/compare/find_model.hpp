// Finds the model that a run left.
#pragma once

#include "kernels/base/result.hpp"

#include <filesystem>
#include <vector>

namespace shoal::scenarios {

/// `path` itself if it is a file, else the final.ckpt in that directory. The function does not read
/// the model. Errors: there is no such file; by its run.yaml the run trains no model.
result<std::filesystem::path> model_file(const std::filesystem::path& path);

/// The checkpoints that the run in `directory` has written so far, by their epochs, without
/// final.ckpt.
std::vector<std::filesystem::path> checkpoints_of(const std::filesystem::path& directory);

} // namespace shoal::scenarios
