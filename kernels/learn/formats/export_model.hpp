// Writes the model of a checkpoint in the forms of other programs.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/checkpoint.hpp"
#include "kernels/learn/formats/model_config.hpp"

#include <filesystem>

namespace shoal::learn {

/// The config.json of a checkpoint's model. Errors: a workload that transformers has no model for
/// (says which others there are), or tensors that are not those of the config.
result<model_config> hugging_face_config(const checkpoint& state);

/// Writes config.json and model.safetensors into a new folder, or one without files.
/// Errors: as above; a folder with files; the path and the system's reason. After an error no file
/// is there.
result<void> export_hugging_face(const checkpoint& state, const std::filesystem::path& folder);

/// Writes the tensors under the names that they have in the checkpoint, with its notes as metadata.
/// Errors: the path and the system's reason.
result<void> export_safetensors(const checkpoint& state, const std::filesystem::path& path);

} // namespace shoal::learn
