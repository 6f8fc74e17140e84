// Where a run left its model.
#pragma once

#include "kernels/base/result.hpp"

#include <filesystem>

namespace shoal::scenarios {

/// `path` itself if it is a file, else the final.ckpt in that directory. What is in the file is not
/// looked at. Errors: nothing there; a run that trains no model, by its run.yaml.
result<std::filesystem::path> model_file(const std::filesystem::path& path);

} // namespace shoal::scenarios
