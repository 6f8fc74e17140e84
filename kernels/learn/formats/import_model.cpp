#include "kernels/learn/formats/import_model.hpp"

#include "kernels/base/digest.hpp"
#include "kernels/base/json_text.hpp"
#include "kernels/learn/formats/export_model.hpp"
#include "kernels/learn/formats/model_config.hpp"
#include "kernels/learn/formats/model_weights.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace shoal::learn {

namespace {

namespace fs = std::filesystem;

/// The keys of config.json that do not change what a model computes from tokens.
bool decides_nothing(const std::string& key) {
  static const std::set<std::string_view> keys{"architectures",
                                               "torch_dtype",
                                               "initializer_range",
                                               "hidden_dropout_prob",
                                               "attention_probs_dropout_prob",
                                               "classifier_dropout_prob"};
  return keys.contains(key) || key.ends_with("_token_id");
}

/// Errors: a key whose values differ.
result<void> same_sizes(const model_config& file, const model_config& wanted) {
  if (model_type(file) != model_type(wanted))
    return failure{"is of type " + std::string(model_type(file)) + "; the scenario's model is of " +
                   std::string(model_type(wanted))};
  const auto there = parse_json<nlohmann::json>(model_config_json(file)),
             here = parse_json<nlohmann::json>(model_config_json(wanted));
  for (const auto& [key, value] : here.items())
    if (!decides_nothing(key) && there.at(key) != value)
      return failure{"has " + key + " " + json_text(there.at(key)) + "; the scenario's model has " +
                     json_text(value)};
  return {};
}

} // namespace

bool is_exchanged_model(const fs::path& path) {
  std::error_code error;
  return path.extension() == ".safetensors" || fs::is_directory(path, error);
}

result<checkpoint> import_model(const fs::path& path, checkpoint wanted) {
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  const auto config_file = path / "config.json";
  // A width tells nothing of the number of heads, and shared layers nothing of how often they are
  // used. The config does.
  if (folder && fs::exists(config_file, error))
    if (const auto ours = hugging_face_config(wanted); ours.ok()) {
      const auto theirs = load_model_config(config_file);
      if (!theirs) return failure{theirs.error()};
      if (auto same = same_sizes(*theirs, *ours); !same)
        return failure{"model: '" + config_file.string() + "' " + same.error()};
    }
  const auto file = model_weights::open(path);
  if (!file) return failure{file.error()};
  wanted.parameters.clear();
  for (const auto& slot : wanted.tensors) {
    SHOAL_CHECK(slot.offset == wanted.parameters.size(), "tensors lie one behind the other");
    const auto read = file->take(slot.name, slot.shape);
    if (!read) return failure{read.error()};
    wanted.parameters.insert(wanted.parameters.end(), read->values.begin(), read->values.end());
  }
  wanted.optimizer_state.assign(kernels::state_bytes(wanted.optimizer, wanted.parameters.size()),
                                std::byte{0});
  wanted.epoch = wanted.step = wanted.samples = wanted.data_from = 0;
  wanted.state_id =
      hash_of(std::as_bytes(std::span(std::as_const(wanted).parameters))).hex().substr(0, 32);
  return wanted;
}

} // namespace shoal::learn
