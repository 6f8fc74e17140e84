// The weights of a model of Hugging Face: the file model.safetensors, or the parts of a large
// model. model.safetensors.index.json names the part of each tensor:
//   {"weight_map": {"h.0.attn.weight": "model-00001-of-00002.safetensors", ...}}
// If a folder has both, model.safetensors counts.
// Thread safety: reading is safe from several threads.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/formats/safetensors.hpp"

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

class model_weights {
public:
  /// Opens one file of safetensors, or the weights in a folder.
  /// Errors: as safetensors::open. The folder has no weights. The index is no JSON, names no
  /// tensors, or names a part outside of the folder. A part is missing, or lacks a tensor that the
  /// index places in it.
  static result<model_weights> open(const std::filesystem::path& path);
  /// True if the folder has model.safetensors or its index.
  static bool are_in(const std::filesystem::path& folder);

  /// The files in the order of their names.
  std::span<const safetensors> files() const noexcept { return files_; }
  /// All tensors of all files.
  std::vector<stored_tensor> tensors() const;
  bool has(std::string_view name) const { return file_of(name) != nullptr; }
  /// As safetensors::take. Errors: as there.
  result<named_tensor> take(std::string_view name, std::span<const std::int64_t> shape) const;

private:
  static result<model_weights> open_parts(const std::filesystem::path& index);
  const safetensors* file_of(std::string_view name) const;

  std::string name_;
  std::vector<safetensors> files_;
  std::map<std::string, std::size_t, std::less<>> places_; ///< empty for one file
};

} // namespace shoal::learn
