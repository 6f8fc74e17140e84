#include "kernels/learn/model_file.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/checkpoint.hpp"
#include "kernels/learn/formats/llama2c_tokenizer.hpp"
#include "kernels/learn/formats/safetensors.hpp"
#include "kernels/learn/formats/whole_file.hpp"
#include "kernels/learn/llama.hpp"
#include "kernels/learn/tokenizer/tokenizer.hpp"
#include "kernels/learn/transformer_description.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <span>
#include <utility>

namespace shoal::learn {

namespace {

namespace fs = std::filesystem;

// In a tokenizer of llama2.c. Models write it after the end of a text, too.
constexpr token_id begin_of_text = 1;

/// The byte codec, which lives as long as the program.
std::shared_ptr<const text_codec> bytes() {
  return {std::shared_ptr<const text_codec>{}, &byte_codec()};
}

result<void> add_tokenizer(served_model& to, const fs::path& folder, const fs::path& given) {
  constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
  const auto vocabulary = to.model->vocabulary();
  const std::string names[] = {"tok" + std::to_string(vocabulary) + ".bin", "tokenizer.bin"};
  fs::path file = given;
  for (const auto& name : names)
    if (file.empty() && fs::exists(folder / name)) file = folder / name;
  if (file.empty())
    return failure{"model: no tokenizer in '" + folder.string() + "': there is no " + names[0] +
                   " and no " + names[1]};
  const auto text = read_whole_file(file, most_bytes, "tokenizer");
  if (!text) return failure{text.error()};
  auto description = parse_llama2c_tokenizer(*text, file.string());
  if (!description) return failure{description.error()};
  auto made = tokenizer::make(std::move(*description));
  if (!made) return failure{"tokenizer: '" + file.string() + "': " + made.error()};
  if (made->vocabulary() != vocabulary)
    return failure{"tokenizer: '" + file.string() + "' has " + std::to_string(made->vocabulary()) +
                   " tokens; the model has " + std::to_string(vocabulary)};
  to.codec = std::make_shared<const tokenizer>(std::move(*made));
  to.begin = to.stop = begin_of_text;
  return {};
}

result<served_model> finish_llama(const decoder_config& config,
                                  std::span<const named_tensor> tensors, const fs::path& folder,
                                  const fs::path& tokenizer) {
  auto parameters = llama_parameters(config, tensors);
  if (!parameters) return failure{parameters.error()};
  served_model out;
  out.model = std::make_shared<const decoder>(config);
  out.parameters = std::move(*parameters);
  if (auto added = add_tokenizer(out, folder, tokenizer); !added) return failure{added.error()};
  return out;
}

result<served_model> load_folder(const fs::path& folder, const fs::path& tokenizer) {
  constexpr std::uint64_t most = 1 << 20;
  const auto text = read_whole_file(folder / "config.json", most, "model");
  if (!text) return failure{text.error()};
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const auto wrong = [&](const std::string& why) {
    return failure{"model: '" + (folder / "config.json").string() + "': " + why};
  };
  if (!json.is_object()) return wrong("this is no JSON object");
  if (json.value("model_type", std::string{}) != "llama")
    return wrong("only models of type 'llama' can be served");
  llama_shape shape;
  decoder_config config;
  try {
    shape.dim = json.at("hidden_size").get<std::int64_t>();
    shape.hidden_dim = json.at("intermediate_size").get<std::int64_t>();
    shape.layers = json.at("num_hidden_layers").get<std::int64_t>();
    shape.heads = json.at("num_attention_heads").get<std::int64_t>();
    shape.kv_heads = json.value("num_key_value_heads", shape.heads);
    shape.vocabulary = json.at("vocab_size").get<std::int64_t>();
    shape.context = json.at("max_position_embeddings").get<std::int64_t>();
    shape.tied = json.value("tie_word_embeddings", false);
    auto made = llama_config(shape);
    if (!made) return failure{made.error()};
    config = *made;
    config.epsilon = json.value("rms_norm_eps", config.epsilon);
    config.rotary_base = json.value("rope_theta", config.rotary_base);
  } catch (const nlohmann::json::exception&) {
    return wrong("a size is missing, or is no whole number");
  }
  if (json.value("hidden_act", std::string{"silu"}) != "silu")
    return wrong("hidden_act must be 'silu'");
  if (auto valid = validate(config); !valid) return failure{valid.error()};
  const auto file = safetensors::open(folder / "model.safetensors");
  if (!file) return failure{file.error()};
  std::vector<named_tensor> tensors;
  for (const auto& slot : layout_of(config)) {
    auto one = file->take(llama_tensor_name(slot.name), slot.shape);
    if (!one) return failure{one.error()};
    tensors.push_back(std::move(*one));
  }
  return finish_llama(config, tensors, folder, tokenizer);
}

result<served_model> load_transformer(const fs::path& path) {
  auto saved = load_checkpoint(path);
  if (!saved) return failure{saved.error()};
  const auto config = transformer_of(*saved);
  if (!config) return failure{"model: '" + path.string() + "' " + config.error()};
  if (config->vocabulary != byte_codec().vocabulary())
    return failure{"model: '" + path.string() + "' is no model of bytes"};
  served_model out;
  out.model = std::make_shared<const decoder>(decoder_of(*config));
  out.parameters = std::move(saved->parameters);
  out.codec = bytes();
  return out;
}

} // namespace

digest served_model::identity() const {
  hasher out;
  for (const auto& slot : model->layout()) {
    out.add(std::string_view{slot.name});
    for (const auto extent : slot.shape) out.add(static_cast<std::uint64_t>(extent));
  }
  out.add(std::as_bytes(std::span(parameters)));
  return out.finish();
}

std::vector<float> served_model::part(const std::vector<kernels::tensor_slot>& tensors) const {
  auto out = gather(model->layout(), parameters, tensors);
  SHOAL_CHECK(out.ok(), "a model has the tensors that it names");
  return std::move(*out);
}

std::vector<token_id> served_model::encode(std::string_view text) const {
  auto out = codec->encode(text);
  if (begin) out.insert(out.begin(), *begin);
  return out;
}

result<served_model> load_served_model(const fs::path& path, const fs::path& tokenizer) {
  auto out = [&]() -> result<served_model> {
    if (fs::is_directory(path)) return load_folder(path, tokenizer);
    if (path.extension() != ".bin") return load_transformer(path);
    const auto file = load_llama2c(path);
    if (!file) return failure{file.error()};
    const auto config = llama_config(file->shape);
    if (!config) return failure{config.error()};
    return finish_llama(*config, file->tensors, path.parent_path(), tokenizer);
  }();
  if (!out) return out;
  out->name = path.stem().string();
  for (const auto& slot : out->model->layout())
    for (std::size_t i = 0; i < slot.size(); ++i)
      if (!std::isfinite(out->parameters[slot.offset + i]))
        return failure{"model: '" + path.string() + "': a weight of '" + slot.name +
                       "' is not finite"};
  return out;
}

served_model random_served_model(std::int64_t layers, std::uint64_t seed) {
  decoder_config config;
  config.layers = layers;
  config.heads = 4;
  config.kv_heads = 2;
  config.dim = 32;
  config.hidden = 64;
  config.context = 512;
  config.vocabulary = byte_codec().vocabulary();
  served_model out;
  out.name = "random";
  out.model = std::make_shared<const decoder>(config);
  out.codec = bytes();
  for (const auto& slot : out.model->layout()) {
    auto random = stream(seed, "random_model." + slot.name);
    const bool gain = slot.shape.size() == 1;
    for (std::size_t i = 0; i < slot.size(); ++i)
      out.parameters.push_back(gain ? 1.F : static_cast<float>(random.normal(0.0, 0.25)));
  }
  return out;
}

} // namespace shoal::learn
