// kernels/learn/layered_model and transformer_blocks: any cut of the layers gives the loss and the
// gradient of the whole model, to the last bit. Arguments that do not fit are refused with the
// reason.
#include "kernels/base/rng.hpp"
#include "kernels/learn/transformer.hpp"
#include "kernels/learn/transformer_blocks.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

using cut = std::vector<layer_range>;

const kernels::transformer_config three{.layers = 3, .heads = 2, .dim = 16, .context = 12};

std::vector<float> rough_parameters(const kernels::transformer_config& config) {
  auto p = kernels::initial_parameters(config, 3);
  auto random = stream(3, "rough");
  for (auto& v : p) v += static_cast<float>(0.2 * random.normal());
  return p;
}

/// Samples, and their inputs and targets as tokens.
struct batch {
  pass_shape shape;
  std::vector<std::byte> samples;
  std::vector<token_id> inputs, targets;
};

batch batch_of(const kernels::transformer_config& config, std::int64_t samples) {
  batch out;
  out.shape = {samples, config.context};
  auto random = stream(5, "tokens");
  std::vector<token_id> all;
  for (std::int64_t s = 0; s < samples; ++s)
    for (std::int64_t t = 0; t <= config.context; ++t) {
      const auto token =
          static_cast<token_id>(random.below(static_cast<std::uint64_t>(config.vocabulary)));
      all.push_back(token);
      if (t < config.context) out.inputs.push_back(token);
      if (t > 0) out.targets.push_back(token);
    }
  out.samples.resize(all.size() * token_bytes(config.vocabulary));
  encode_tokens(all, config.vocabulary, out.samples);
  return out;
}

struct outcome {
  double loss = 0;
  std::vector<float> gradient;
};

/// Forward through the pieces, each with only its own parameters, and back.
outcome by_pieces(const layered_model& model, const kernels::transformer_config& config,
                  const std::vector<float>& parameters, const batch& data, const cut& blocks) {
  const auto whole = kernels::layout_of(config);
  outcome out{0, std::vector<float>(parameters.size())};
  const auto embedding = gather(whole, parameters, model.embedding_tensors()).value();
  const auto head = gather(whole, parameters, model.head_tensors()).value();
  std::vector<std::vector<float>> of_blocks,
      entered{model.embed(embedding, data.shape, data.inputs).value()};
  for (const auto& block : blocks) {
    of_blocks.push_back(gather(whole, parameters, model.block_tensors(block).value()).value());
    entered.push_back(model.forward(block, of_blocks.back(), data.shape, entered.back()).value());
  }
  std::vector<float> head_gradient(head.size());
  auto back =
      model.loss_backward(head, data.shape, entered.back(), data.targets, head_gradient).value();
  CHECK(model.loss(head, data.shape, entered.back(), data.targets).value() == back.loss);
  out.loss = back.loss;
  CHECK(scatter_add(model.head_tensors(), head_gradient, whole, out.gradient).ok());
  auto upstream = std::move(back.gradient_in);
  for (auto i = blocks.size(); i-- > 0;) {
    std::vector<float> gradient(of_blocks[i].size());
    upstream =
        model.backward(blocks[i], of_blocks[i], data.shape, entered[i], upstream, gradient).value();
    CHECK(scatter_add(model.block_tensors(blocks[i]).value(), gradient, whole, out.gradient).ok());
  }
  std::vector<float> gradient(embedding.size());
  CHECK(model.embed_backward(embedding, data.shape, data.inputs, upstream, gradient).ok());
  CHECK(scatter_add(model.embedding_tensors(), gradient, whole, out.gradient).ok());
  return out;
}

} // namespace

TEST_CASE("a chain of blocks has the loss and the gradient of the whole model, to the last bit, "
          "for every cut") {
  for (const auto& config :
       {three, kernels::transformer_config{
                   .layers = 3, .heads = 4, .dim = 32, .context = 24, .vocabulary = 300}})
    for (const std::int64_t samples : {1, 5, 16}) {
      const auto parameters = rough_parameters(config);
      const auto data = batch_of(config, samples);
      for (const bool checkpoint : {false, true}) {
        const transformer model(config, checkpoint);
        outcome whole{0, std::vector<float>(parameters.size())};
        whole.loss = model.accumulate_gradient(parameters, data.samples,
                                               static_cast<std::size_t>(samples), whole.gradient);
        const auto pieces = make_transformer_blocks(config, checkpoint);
        REQUIRE_MESSAGE(pieces.ok(), pieces.error());
        for (const cut& blocks :
             {cut{{0, 3}}, cut{{0, 1}, {1, 3}}, cut{{0, 2}, {2, 3}}, cut{{0, 1}, {1, 2}, {2, 3}}}) {
          CAPTURE(samples);
          CAPTURE(checkpoint);
          CAPTURE(blocks.size());
          const auto chained = by_pieces(**pieces, config, parameters, data, blocks);
          CHECK(chained.loss == whole.loss);
          CHECK(chained.gradient == whole.gradient);
        }
      }
    }
}

TEST_CASE(
    "a chain of blocks makes the predictions of the whole model, for sequences of any length") {
  const transformer model(three);
  const auto pieces = make_transformer_blocks(three).value();
  const auto parameters = rough_parameters(three);
  const auto data = batch_of(three, 1);
  const auto whole = model.layout();
  for (const std::int64_t time : {1, 5, 12}) {
    const pass_shape shape{1, time};
    const auto seen = std::span(data.inputs).first(static_cast<std::size_t>(time));
    auto x =
        pieces->embed(gather(whole, parameters, pieces->embedding_tensors()).value(), shape, seen)
            .value();
    for (const layer_range block : {layer_range{0, 2}, layer_range{2, 3}})
      x = pieces
              ->forward(block,
                        gather(whole, parameters, pieces->block_tensors(block).value()).value(),
                        shape, x)
              .value();
    const auto logits =
        pieces->logits(gather(whole, parameters, pieces->head_tensors()).value(), shape, x).value();
    const auto expected = model.next_logits(parameters, seen);
    REQUIRE(logits.size() == expected.size());
    // The head of one token is another matrix product than the head of all tokens, so its sums may
    // round differently.
    for (std::size_t i = 0; i < logits.size(); ++i)
      CHECK(logits[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  }
}

TEST_CASE("a block's parameters lie in the whole vector as the block needs them") {
  const auto pieces = make_transformer_blocks(three).value();
  const auto parameters = rough_parameters(three);
  const auto whole = kernels::layout_of(three);
  const auto block = pieces->block_tensors({1, 3}).value();
  REQUIRE(block.size() == 12);
  CHECK(block.front().name == "layer1.attention_norm");
  CHECK(block.front().offset == 0);
  const auto gathered = gather(whole, parameters, block).value();
  const auto first = whole[1 + 6].offset;
  CHECK(std::equal(gathered.begin(), gathered.end(),
                   parameters.begin() + static_cast<std::ptrdiff_t>(first)));
}

TEST_CASE("arguments that do not fit are refused with the reason") {
  const auto pieces = make_transformer_blocks(three).value();
  const pass_shape shape{2, 3};
  const std::vector<float> x(2 * 3 * 16), layer(12 * 16 * 16 + 2 * 16), embedding(256 * 16),
      head(256 * 16 + 16);
  std::vector<float> sum(layer.size()), short_sum(7), head_sum(head.size());
  const std::vector<token_id> tokens(6);
  CHECK(pieces->forward({0, 1}, layer, shape, x).ok());
  CHECK(pieces->backward({2, 3}, layer, shape, x, x, sum).ok());
  CHECK(pieces->loss_backward(head, shape, x, tokens, head_sum).ok());

  for (const layer_range none :
       {layer_range{0, 0}, layer_range{2, 1}, layer_range{-1, 1}, layer_range{2, 4}}) {
    CHECK(!pieces->forward(none, layer, shape, x).ok());
    CHECK(!pieces->block_tensors(none).ok());
  }
  CHECK(pieces->forward({2, 4}, layer, shape, x).error() ==
        "layers: the model has no layers [2, 4): it has 3");
  CHECK(pieces->forward({0, 2}, layer, shape, x).error() ==
        "layers: the vector of the block's parameters has 3104 values; it needs 6208");
  CHECK(pieces->forward({0, 1}, layer, {2, 4}, x).error() ==
        "layers: the vector of activations has 96 values; it needs 128");
  CHECK(pieces->forward({0, 1}, layer, {2, 13}, x).error() ==
        "layers: time is 13; it must be from 1 to 12");
  CHECK(pieces->forward({0, 1}, layer, {0, 3}, x).error() ==
        "layers: samples is 0; it must be from 1 to 16777216");
  CHECK(!pieces->forward({0, 1}, layer, {std::int64_t{1} << 62, 12}, x).ok());
  CHECK(!pieces->backward({0, 1}, layer, shape, x, std::span(x).first(5), sum).ok());
  CHECK(pieces->backward({0, 1}, layer, shape, x, x, short_sum).error() ==
        "layers: the sum has 7 values; it needs 3104");
  CHECK(pieces->embed(embedding, shape, std::vector<token_id>{0, 1, 2, 256, 4, 5}).error() ==
        "layers: token 3 is 256; the vocabulary has 256");
  CHECK(!pieces->embed(embedding, shape, std::span(tokens).first(5)).ok());
  CHECK(!pieces->embed_backward(embedding, shape, tokens, x, short_sum).ok());
  CHECK(!pieces->loss(head, shape, x, std::vector<token_id>{0, 1, 2, -1, 4, 5}).ok());
  CHECK(!pieces->loss(embedding, shape, x, tokens).ok());
  CHECK(!pieces->logits(embedding, shape, x).ok());
  CHECK(!make_transformer_blocks({.heads = 3, .dim = 16}).ok());

  const auto whole = kernels::layout_of(three);
  const std::vector<float> all(kernels::parameter_count(three));
  CHECK(!gather(whole, x, pieces->head_tensors()).ok());
  auto strange = pieces->head_tensors();
  strange.front().name = "codebook";
  CHECK(gather(whole, all, strange).error() ==
        "layers: the model has no tensor 'codebook' of that shape");
}
