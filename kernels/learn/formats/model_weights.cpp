#include "kernels/learn/formats/model_weights.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/learn/formats/json_words.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <utility>

namespace shoal::learn {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

constexpr const char* whole = "model.safetensors";
constexpr const char* index_file = "model.safetensors.index.json";

failure wrong(const fs::path& index, const std::string& why) {
  return failure{"model: '" + index.string() + "' " + why};
}

/// The file of each tensor, by the index.
result<std::map<std::string, std::string>> read_index(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return wrong(path, "cannot be opened");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::map<std::string, std::string> out;
  try {
    const auto parsed = parse_json<json>(text);
    for (const auto& [tensor, part] : parsed.at("weight_map").get_ref<const json::object_t&>()) {
      const auto& name = part.get_ref<const std::string&>();
      // The file may come from anybody, so it names no path.
      if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
          name.find('\0') != std::string::npos)
        return wrong(path, "places the tensor '" + tensor +
                               "' in something that is no file of this folder");
      out.emplace(tensor, name);
    }
  } catch (const json::exception& error) {
    return wrong(path, "is no index of weights (" + std::string(json_words(error.what())) + ")");
  }
  if (out.empty()) return wrong(path, "names no tensor");
  return out;
}

} // namespace

bool model_weights::are_in(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / whole, error) || fs::exists(folder / index_file, error);
}

result<model_weights> model_weights::open(const fs::path& path) {
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  if (folder && !fs::exists(path / whole, error) && fs::exists(path / index_file, error))
    return open_parts(path / index_file);
  const auto file = folder ? path / whole : path;
  auto opened = safetensors::open(file);
  if (!opened) return failure{opened.error()};
  model_weights out;
  out.name_ = file.string();
  out.files_.push_back(std::move(*opened));
  return out;
}

result<model_weights> model_weights::open_parts(const fs::path& index) {
  const auto parts = read_index(index);
  if (!parts) return failure{parts.error()};
  model_weights out;
  out.name_ = index.string();
  std::map<std::string, std::size_t> opened;
  for (const auto& [tensor, part] : *parts) opened.emplace(part, 0);
  for (auto& [part, number] : opened) {
    auto file = safetensors::open(index.parent_path() / part);
    if (!file) return failure{file.error()};
    number = out.files_.size();
    out.files_.push_back(std::move(*file));
  }
  for (const auto& [tensor, part] : *parts) {
    const auto number = opened.at(part);
    if (out.files_[number].find(tensor) == nullptr)
      return wrong(index, "places the tensor '" + tensor + "' in '" + part +
                              "', which has none of that name; copy the files again");
    out.places_.emplace(tensor, number);
  }
  return out;
}

std::vector<stored_tensor> model_weights::tensors() const {
  std::vector<stored_tensor> out;
  for (const auto& file : files_)
    out.insert(out.end(), file.tensors().begin(), file.tensors().end());
  return out;
}

const safetensors* model_weights::file_of(std::string_view name) const {
  if (places_.empty()) return files_.front().find(name) == nullptr ? nullptr : &files_.front();
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &files_[place->second];
}

result<named_tensor> model_weights::take(std::string_view name,
                                         std::span<const std::int64_t> shape) const {
  const auto* file = file_of(name);
  if (file == nullptr && !places_.empty())
    return failure{"model: '" + name_ + "' has no tensor '" + std::string(name) + "'"};
  return (file == nullptr ? files_.front() : *file).take(name, shape);
}

} // namespace shoal::learn
