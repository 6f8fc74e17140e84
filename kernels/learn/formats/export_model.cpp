#include "kernels/learn/formats/export_model.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/base/whole_number.hpp"
#include "kernels/learn/formats/safetensors.hpp"
#include "kernels/learn/formats/whole_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shoal::learn {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

/// From the description in the checkpoint of the workload `albert`. Throws json::exception.
model_config albert_of(const std::string& description) {
  const auto found = parse_json<json>(description);
  hugging_face::albert_config out;
  for (const auto& [name, to] : {std::pair{"vocabulary", &out.vocabulary},
                                 {"embedding", &out.embedding},
                                 {"hidden", &out.hidden},
                                 {"layers", &out.layers},
                                 {"heads", &out.heads},
                                 {"feed_forward", &out.intermediate},
                                 {"positions", &out.positions}})
    *to = whole_number<std::int64_t>(found.at(name));
  return out;
}

using description_reader = model_config (*)(const std::string&);

/// The workloads whose tensors have the names that transformers has for them.
const std::map<std::string, description_reader>& exported() {
  static const std::map<std::string, description_reader> all{{"albert", albert_of}};
  return all;
}

std::vector<named_tensor> tensors_in(const checkpoint& state) {
  std::vector<named_tensor> out;
  out.reserve(state.tensors.size());
  for (const auto& slot : state.tensors) {
    const auto values = std::span(state.parameters).subspan(slot.offset, slot.size());
    out.push_back({slot.name, slot.shape, {values.begin(), values.end()}});
  }
  return out;
}

} // namespace

result<model_config> hugging_face_config(const checkpoint& state) {
  const auto known = exported().find(state.workload);
  if (known == exported().end()) {
    std::string others;
    for (const auto& [name, reader] : exported()) others += (others.empty() ? "" : ", ") + name;
    return failure{"has a model of the workload '" + state.workload +
                   "', which transformers has no layout for; these have one: " + others +
                   "; --format safetensors writes the tensors of any model"};
  }
  model_config config;
  try {
    config = known->second(state.model);
  } catch (const json::exception&) {
    return failure{"has a description of its model that lacks a size"};
  }
  // The limits of config.json hold for the sizes, too.
  auto read = parse_model_config(model_config_json(config), "config.json");
  if (!read) return failure{"has a model that config.json cannot describe: " + read.error()};
  const auto wanted = tensors_of(*read);
  if (!wanted) return failure{wanted.error()};
  std::map<std::string, std::vector<std::int64_t>> left;
  for (const auto& slot : state.tensors) left[slot.name] = slot.shape;
  for (const auto& tensor : *wanted) {
    const auto found = left.find(tensor.name);
    if (found == left.end() || found->second != tensor.shape)
      return failure{"has no tensor '" + tensor.name + "' of shape " + to_text(tensor.shape) +
                     ", which its model needs in transformers"};
    left.erase(found);
  }
  if (!left.empty())
    return failure{"has the tensor '" + left.begin()->first +
                   "', which its model has not in transformers"};
  return read;
}

result<void> export_hugging_face(const checkpoint& state, const fs::path& folder) {
  const auto config = hugging_face_config(state);
  if (!config) return failure{config.error()};
  std::error_code error;
  const bool made = fs::create_directories(folder, error);
  if (error) return failure{"cannot create '" + folder.string() + "': " + error.message()};
  if (!fs::is_empty(folder, error) || error)
    return failure{"'" + folder.string() + "' is not empty; name a new folder"};
  auto written = write_safetensors(folder / "model.safetensors", tensors_in(state));
  if (written.ok())
    written = write_whole_file(folder / "config.json", model_config_json(*config), "model");
  if (!written.ok()) {
    fs::remove(folder / "model.safetensors", error);
    if (made) fs::remove(folder, error);
  }
  return written;
}

result<void> export_safetensors(const checkpoint& state, const fs::path& path) {
  auto notes = state.notes;
  notes["workload"] = state.workload;
  notes["steps"] = std::to_string(state.step);
  return write_safetensors(path, tensors_in(state), notes);
}

} // namespace shoal::learn
