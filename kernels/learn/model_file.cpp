#include "kernels/learn/model_file.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/checkpoint.hpp"
#include "kernels/learn/formats/llama2c_tokenizer.hpp"
#include "kernels/learn/formats/model_weights.hpp"
#include "kernels/learn/formats/whole_file.hpp"
#include "kernels/learn/layouts/decoder_layout.hpp"
#include "kernels/learn/llama.hpp"
#include "kernels/learn/tokenizer/load_tokenizer.hpp"
#include "kernels/learn/tokenizer/tokenizer.hpp"
#include "kernels/learn/transformer_description.hpp"

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

result<void> add_llama2c_tokenizer(served_model& to, const fs::path& file) {
  constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
  const auto text = read_whole_file(file, most_bytes, "tokenizer");
  if (!text) return failure{text.error()};
  auto description = parse_llama2c_tokenizer(*text, file.string());
  if (!description) return failure{description.error()};
  auto made = tokenizer::make(std::move(*description));
  if (!made) return failure{"tokenizer: '" + file.string() + "': " + made.error()};
  to.codec = std::make_shared<const tokenizer>(std::move(*made));
  to.begin = to.stop = begin_of_text;
  return {};
}

/// The first file that exists: `given`, a tokenizer of llama2.c, or with `others` one of Hugging
/// Face.
result<void> add_tokenizer(served_model& to, const fs::path& folder, const fs::path& given,
                           bool others) {
  const auto vocabulary = to.model->vocabulary();
  const std::string names[] = {"tok" + std::to_string(vocabulary) + ".bin", "tokenizer.bin"};
  fs::path file = given;
  for (const auto& name : names)
    if (file.empty() && fs::exists(folder / name)) file = folder / name;
  if (file.empty() && !others)
    return failure{"model: no tokenizer in '" + folder.string() + "': there is no " + names[0] +
                   " and no " + names[1]};
  if (file.empty()) file = folder;
  if (file.extension() == ".bin") {
    if (auto added = add_llama2c_tokenizer(to, file); !added) return added;
  } else {
    auto loaded = load_tokenizer(file);
    if (!loaded) return failure{loaded.error()};
    to.codec = loaded->codec;
  }
  if (to.codec->vocabulary() != vocabulary)
    return failure{"tokenizer: '" + file.string() + "' has " +
                   std::to_string(to.codec->vocabulary()) + " tokens; the model has " +
                   std::to_string(vocabulary)};
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
  if (auto added = add_tokenizer(out, folder, tokenizer, false); !added)
    return failure{added.error()};
  return out;
}

result<served_model> load_folder(const fs::path& folder, const fs::path& tokenizer) {
  const auto sizes = load_model_config(folder / "config.json");
  if (!sizes) return failure{sizes.error()};
  const auto wrong = [&](const std::string& why) {
    return failure{"model: '" + (folder / "config.json").string() + "' " + why};
  };
  const auto* layout = find_decoder_layout(model_type(*sizes));
  if (layout == nullptr)
    return wrong("is of type " + std::string(model_type(*sizes)) + "; models that write text are " +
                 decoder_layout_names());
  const auto config = layout->config_of(*sizes);
  if (!config) return wrong(config.error());
  if (auto valid = validate(*config); !valid) return failure{valid.error()};
  const auto file = model_weights::open(folder);
  if (!file) return failure{file.error()};
  auto parameters = decoder_parameters(*layout, *config, *file);
  if (!parameters) return failure{parameters.error()};
  served_model out;
  out.model = std::make_shared<const decoder>(*config);
  out.parameters = std::move(*parameters);
  if (auto added = add_tokenizer(out, folder, tokenizer, true); !added)
    return failure{added.error()};
  if (!out.stop) {
    const auto [bos, eos] = ends_of_text(*sizes);
    const auto known = [&](std::int64_t token) { return token >= 0 && token < config->vocabulary; };
    if (layout->begins_texts && known(bos)) out.begin = bos;
    if (known(eos)) out.stop = eos;
  }
  return out;
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
