// kernels/learn/layouts: GPT-2 and BLOOM from folders of Hugging Face, beside a composition of
// libtorch's operations on the tensors of the file.
#include <ATen/ATen.h>
#undef CHECK // libtorch's logging defines one

#include "kernels/base/rng.hpp"
#include "kernels/learn/formats/model_config.hpp"
#include "kernels/learn/formats/safetensors.hpp"
#include "kernels/learn/model_file.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <string>

using namespace shoal;
using namespace shoal::learn;
using at::Tensor;

namespace {

/// A folder with a model of these sizes and random weights.
struct random_folder {
  random_folder(const model_config& config, bool prefixed) {
    here.write("config.json", model_config_json(config));
    std::vector<named_tensor> tensors;
    const auto all = tensors_of(config).value();
    for (const auto& each : all) {
      named_tensor one{each.name, each.shape, {}};
      const std::string prefix = "transformer.";
      REQUIRE(one.name.starts_with(prefix));
      if (!prefixed) one.name = one.name.substr(prefix.size());
      auto random = stream(5, each.name);
      std::size_t size = 1;
      for (const auto extent : each.shape) size *= static_cast<std::size_t>(extent);
      const bool gain = each.shape.size() == 1 && each.name.ends_with("weight");
      for (std::size_t i = 0; i < size; ++i)
        one.values.push_back(static_cast<float>((gain ? 1 : 0) + 0.3 * random.normal()));
      of.emplace(each.name.substr(prefix.size()), at::empty(each.shape));
      std::copy(one.values.begin(), one.values.end(),
                of.at(each.name.substr(prefix.size())).data_ptr<float>());
      tensors.push_back(std::move(one));
    }
    if (prefixed) {
      REQUIRE(write_safetensors(here.path / "model.safetensors", tensors).ok());
      return;
    }
    // In two parts, as large models are.
    const auto half = tensors.size() / 2;
    const std::span whole(tensors);
    REQUIRE(write_safetensors(here.path / "1.safetensors", whole.first(half)).ok());
    REQUIRE(write_safetensors(here.path / "2.safetensors", whole.subspan(half)).ok());
    std::string index;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      index += (i == 0 ? "" : ", ") + ('"' + tensors[i].name) + "\": \"" + (i < half ? "1" : "2") +
               ".safetensors\"";
    here.write("model.safetensors.index.json", "{\"weight_map\": {" + index + "}}");
  }
  scratch_folder here;
  std::map<std::string, Tensor> of;
};

Tensor norm(const random_folder& f, const std::string& name, const Tensor& x) {
  return at::layer_norm(x, {x.size(-1)}, f.of.at(name + ".weight"), f.of.at(name + ".bias"), 1e-5);
}

/// q, k and v [heads, time, width]; `bias` [heads, 1, time] or [1].
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias) {
  const auto time = q.size(1);
  auto scores = at::matmul(q, k.transpose(1, 2)) / std::sqrt(static_cast<double>(q.size(2)));
  scores = (scores + bias).masked_fill(at::ones({time, time}, at::kBool).triu(1), -INFINITY);
  return at::matmul(at::softmax(scores, -1), v).transpose(0, 1).reshape({time, -1});
}

Tensor gpt2_layer(const random_folder& f, std::int64_t heads, std::int64_t i, Tensor x) {
  const auto layer = "h." + std::to_string(i) + ".";
  const auto product = [&](const std::string& name, const Tensor& in) {
    return at::matmul(in, f.of.at(layer + name + ".weight")) + f.of.at(layer + name + ".bias");
  };
  const auto parts = product("attn.c_attn", norm(f, layer + "ln_1", x)).chunk(3, 1);
  const auto by_head = [&](const Tensor& t) {
    return t.view({t.size(0), heads, -1}).transpose(0, 1);
  };
  x = x + product("attn.c_proj", attention(by_head(parts[0]), by_head(parts[1]), by_head(parts[2]),
                                           at::zeros({1})));
  return x +
         product("mlp.c_proj", at::gelu(product("mlp.c_fc", norm(f, layer + "ln_2", x)), "tanh"));
}

Tensor bloom_layer(const random_folder& f, const std::vector<double>& slopes, std::int64_t i,
                   Tensor x) {
  const auto layer = "h." + std::to_string(i) + ".";
  const auto product = [&](const std::string& name, const Tensor& in) {
    return at::linear(in, f.of.at(layer + name + ".weight"), f.of.at(layer + name + ".bias"));
  };
  const auto heads = static_cast<std::int64_t>(slopes.size());
  const auto time = x.size(0);
  const auto fused =
      product("self_attention.query_key_value", norm(f, layer + "input_layernorm", x))
          .view({time, heads, 3, -1});
  const auto part = [&](std::int64_t which) { return fused.select(2, which).transpose(0, 1); };
  auto bias = at::empty({heads, 1, time});
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t t = 0; t < time; ++t)
      bias[h][0][t] = slopes[static_cast<std::size_t>(h)] * static_cast<double>(t);
  x = x + product("self_attention.dense", attention(part(0), part(1), part(2), bias));
  return x + product("mlp.dense_4h_to_h",
                     at::gelu(product("mlp.dense_h_to_4h",
                                      norm(f, layer + "post_attention_layernorm", x)),
                              "tanh"));
}

/// Compares the model of the folder with libtorch's. layer(i, x) computes a layer.
void compare(const random_folder& folder, const std::string& words,
             const std::function<Tensor(const Tensor&)>& embed,
             const std::function<Tensor(std::int64_t, const Tensor&)>& layer) {
  const auto model = load_served_model(folder.here.path, "bytes");
  REQUIRE_MESSAGE(model.ok(), model.error());
  const auto& decoder = *model->model;
  const auto ends =
      decoder.ends(model->part(decoder.embedding_tensors()), model->part(decoder.head_tensors()))
          .value();
  const layer_range all{0, decoder.layers()};
  const auto block = decoder.block(all, model->part(*decoder.block_tensors(all))).value();
  std::vector<token_id> tokens;
  auto random = stream(6, "tokens");
  constexpr std::int64_t time = 12;
  for (std::int64_t i = 0; i < time; ++i)
    tokens.push_back(static_cast<token_id>(random.below(256)));

  // libtorch.
  auto entered = embed(at::tensor(at::ArrayRef<std::int64_t>(tokens.data(), tokens.size())));
  entered = entered.detach().set_requires_grad(true);
  auto x = entered;
  for (std::int64_t i = 0; i < decoder.layers(); ++i) x = layer(i, x);
  const auto theirs =
      at::matmul(norm(folder, "ln_f", x), folder.of.at(words).transpose(0, 1)).contiguous();
  auto weights = at::empty_like(x);
  for (std::int64_t i = 0; i < weights.numel(); ++i)
    weights.data_ptr<float>()[i] = static_cast<float>(random.normal());
  (x * weights).sum().backward();

  // One pass, and then step by step.
  const pass_shape shape{1, time};
  const auto first = ends->embed(tokens, 0).value();
  const auto whole = block->forward(shape, first).value();
  const auto logits = ends->logits(whole).value();
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto their = static_cast<double>(theirs.data_ptr<float>()[i]);
    worst = std::max(worst, std::abs(static_cast<double>(logits[i]) - their));
    largest = std::max(largest, std::abs(their));
  }
  MESSAGE("largest logit ", largest, ", largest difference ", worst);
  CHECK(worst < 1e-4 * std::max(1.0, largest));
  auto cache = block->make_cache(1, time).value();
  std::vector<float> stepped;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto row = ends->embed({&tokens[i], 1}, i).value();
    const cached_step step[] = {{&cache, 1, row}};
    REQUIRE(block->extend(step).ok());
    stepped.insert(stepped.end(), row.begin(), row.end());
  }
  CHECK(stepped == whole);

  const std::span<const float> slopes(weights.data_ptr<float>(),
                                      static_cast<std::size_t>(weights.numel()));
  const auto gradient = block->backward(shape, first, slopes).value();
  const auto reference = entered.grad().contiguous();
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const auto their = static_cast<double>(reference.data_ptr<float>()[i]);
    difference = std::max(difference, std::abs(static_cast<double>(gradient[i]) - their));
    size = std::max(size, std::abs(their));
  }
  CHECK(difference < 1e-5 * size);
}

} // namespace

TEST_CASE(
    "a GPT-2 from a folder has the logits and gradients of libtorch by steps and in one pass") {
  hugging_face::gpt2_config config;
  config.vocabulary = 256;
  config.hidden = 24;
  config.layers = 3;
  config.heads = 4;
  config.intermediate = 40;
  config.positions = 20;
  config.bos = config.eos = 7;
  for (const bool prefixed : {true, false}) {
    const random_folder folder(config, prefixed);
    compare(
        folder, "wte.weight",
        [&](const Tensor& ids) {
          return folder.of.at("wte.weight").index_select(0, ids) +
                 folder.of.at("wpe.weight").slice(0, 0, ids.size(0));
        },
        [&](std::int64_t i, const Tensor& x) { return gpt2_layer(folder, config.heads, i, x); });
  }
  const random_folder folder(config, true);
  const auto model = load_served_model(folder.here.path, "bytes");
  CHECK(model->stop == 7);
  CHECK(!model->begin);
  const auto ends = model->model
                        ->ends(model->part(model->model->embedding_tensors()),
                               model->part(model->model->head_tensors()))
                        .value();
  CHECK(ends->embed(std::vector<token_id>{1, 2}, 18).ok());
  CHECK(ends->embed(std::vector<token_id>{1, 2}, 19).error() ==
        "layers: the position 20 is outside the context of 20");
}

TEST_CASE(
    "a BLOOM from a folder has the logits and gradients of libtorch by steps and in one pass") {
  // The slopes of the paper for 4 heads, and of the published code for 6.
  const std::vector<std::vector<double>> slopes{
      {1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256},
      {1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256, 1.0 / 2, 1.0 / 8}};
  for (const auto& each : slopes) {
    hugging_face::bloom_config config;
    config.vocabulary = 256;
    config.hidden = 24;
    config.layers = 2;
    config.heads = static_cast<std::int64_t>(each.size());
    const random_folder folder(config, each.size() == 4);
    compare(
        folder, "word_embeddings.weight",
        [&](const Tensor& ids) {
          return norm(folder, "word_embeddings_layernorm",
                      folder.of.at("word_embeddings.weight").index_select(0, ids));
        },
        [&](std::int64_t i, const Tensor& x) { return bloom_layer(folder, each, i, x); });
  }
}
