// A small model in plain loops, its samples, and the gradient of the whole model.
#pragma once

#include "actors/pipeline/stage_model.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/decoder.hpp"
#include "kernels/learn/tokens.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

namespace shoal::actors::testing {

inline constexpr std::int64_t context = 6, vocabulary = 50;

inline std::shared_ptr<const learn::decoder> five_layers() {
  learn::decoder_config config;
  config.layers = 5;
  config.heads = 2;
  config.kv_heads = 1;
  config.dim = 8;
  config.hidden = 12;
  config.context = context;
  config.vocabulary = vocabulary;
  return std::make_shared<const learn::decoder>(config);
}

inline std::vector<float> parameters_of(const learn::decoder& model) {
  std::vector<float> out(kernels::end_of(model.layout()));
  auto random = stream(7, "model");
  for (auto& each : out) each = static_cast<float>(0.5 * random.normal());
  return out;
}

inline result<piece_batch> read_batch(std::span<const std::byte> samples, std::uint64_t count) {
  if (samples.size() != count * (context + 1)) return failure{"samples of another size"};
  piece_batch out;
  out.shape = {static_cast<std::int64_t>(count), context};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto token = static_cast<learn::token_id>(samples[i]);
    if (i % (context + 1) != context) out.inputs.push_back(token);
    if (i % (context + 1) != 0) out.targets.push_back(token);
  }
  return out;
}

inline std::vector<std::byte> samples_of(std::uint64_t count) {
  std::vector<std::byte> out(count * (context + 1));
  auto random = stream(9, "samples");
  for (auto& each : out) each = static_cast<std::byte>(random.below(vocabulary));
  return out;
}

struct whole_result {
  double loss = 0;
  std::vector<float> gradient; ///< the sum over the samples, in the layout of the model
};

inline whole_result whole(const learn::decoder& model, const std::vector<float>& parameters,
                          const std::vector<std::byte>& samples, std::uint64_t count) {
  const auto batch = read_batch(samples, count).value();
  const learn::layer_range all{0, model.layers()};
  const auto tensors = model.block_tensors(all).value();
  const auto part = [&](const auto& piece) {
    return learn::gather(model.layout(), parameters, piece).value();
  };
  const auto embedding = part(model.embedding_tensors()), head = part(model.head_tensors()),
             block = part(tensors);
  std::vector<float> of_embedding(embedding.size()), of_head(head.size()), of_block(block.size());
  const auto in = model.embed(embedding, batch.shape, batch.inputs).value();
  const auto out = model.forward(all, block, batch.shape, in).value();
  const auto top = model.loss_backward(head, batch.shape, out, batch.targets, of_head).value();
  const auto bottom =
      model.backward(all, block, batch.shape, in, top.gradient_in, of_block).value();
  REQUIRE(model.embed_backward(embedding, batch.shape, batch.inputs, bottom, of_embedding).ok());
  whole_result sum{top.loss, std::vector<float>(parameters.size())};
  REQUIRE(
      learn::scatter_add(model.embedding_tensors(), of_embedding, model.layout(), sum.gradient));
  REQUIRE(learn::scatter_add(model.head_tensors(), of_head, model.layout(), sum.gradient));
  REQUIRE(learn::scatter_add(tensors, of_block, model.layout(), sum.gradient));
  return sum;
}

} // namespace shoal::actors::testing
