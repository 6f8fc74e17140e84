// Starts training from a model that another program wrote: a folder with the weights (and
// config.json), or a safetensors file. Weights may be in parts (model_weights.hpp).
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/checkpoint.hpp"

#include <filesystem>

namespace shoal::learn {

/// Whether `path` is a folder, or has the ending `.safetensors`.
bool is_exchanged_model(const std::filesystem::path& path);

/// `wanted` with the file's numbers: the tensors of `wanted` by their names, and an optimizer that
/// has taken no step. Other tensors of the file are left alone. The state id is a hash of the
/// parameters. `wanted` has tensors, model and optimizer of a scenario.
/// Errors: the file cannot be read; a tensor that is missing or has another shape. A config.json
/// with other sizes than the model, if the workload has a layout in transformers.
result<checkpoint> import_model(const std::filesystem::path& path, checkpoint wanted);

} // namespace shoal::learn
