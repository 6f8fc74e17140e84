// kernels/learn/decoder beside libtorch: both compute the byte transformer.
#include "kernels/base/rng.hpp"
#include "kernels/learn/decoder.hpp"
#include "kernels/learn/maxout_model.hpp"
#include "kernels/learn/maxout_transformer.hpp"
#include "kernels/learn/transformer.hpp"
#include "kernels/learn/transformer_blocks.hpp"
#include "kernels/learn/transformer_math.hpp"
#include "kernels/learn/whole_pass.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

double distance(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double most = 0, size = 1e-12;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    size = std::max(size, std::abs(static_cast<double>(b[i])));
  }
  return most / size;
}

} // namespace

TEST_CASE("the decoder in plain loops has the activations and gradients of libtorch to 1e-5") {
  const kernels::transformer_config config{.layers = 3, .heads = 2, .dim = 32, .context = 16};
  auto parameters = kernels::initial_parameters(config, 3);
  auto random = stream(3, "rough");
  for (auto& v : parameters) v += static_cast<float>(0.1 * random.normal());
  const decoder plain(decoder_of(config));
  const auto torch = make_transformer_blocks(config).value();
  const pass_shape shape{2, 9};
  std::vector<token_id> tokens, targets;
  for (std::size_t i = 0; i < shape.tokens(); ++i) {
    tokens.push_back(static_cast<token_id>(random.below(256)));
    targets.push_back(static_cast<token_id>(random.below(256)));
  }
  const auto part = [&](const std::vector<kernels::tensor_slot>& tensors) {
    return gather(plain.layout(), parameters, tensors).value();
  };
  const auto embedding = part(plain.embedding_tensors()), head = part(plain.head_tensors());
  const auto x = plain.embed(embedding, shape, tokens).value();
  CHECK(x == torch->embed(embedding, shape, tokens).value());
  const layer_range middle{1, 3};
  const auto weights = part(plain.block_tensors(middle).value());
  const auto ours = plain.forward(middle, weights, shape, x).value();
  const auto theirs = torch->forward(middle, weights, shape, x).value();
  CHECK(distance(ours, theirs) < 1e-5);
  CHECK(distance(plain.logits(head, shape, theirs).value(),
                 torch->logits(head, shape, theirs).value()) < 1e-5);
  std::vector<float> our_head(head.size()), their_head(head.size());
  const auto our_loss = plain.loss_backward(head, shape, theirs, targets, our_head).value();
  const auto their_loss = torch->loss_backward(head, shape, theirs, targets, their_head).value();
  CHECK(our_loss.loss == doctest::Approx(their_loss.loss).epsilon(1e-6));
  CHECK(distance(our_loss.gradient_in, their_loss.gradient_in) < 1e-5);
  CHECK(distance(our_head, their_head) < 1e-5);
  std::vector<float> our_sum(weights.size()), their_sum(weights.size());
  const auto our_back =
      plain.backward(middle, weights, shape, x, their_loss.gradient_in, our_sum).value();
  const auto their_back =
      torch->backward(middle, weights, shape, x, their_loss.gradient_in, their_sum).value();
  CHECK(distance(our_back, their_back) < 1e-5);
  CHECK(distance(our_sum, their_sum) < 1e-5);
}

TEST_CASE(
    "a transformer with bottlenecks has the loss, gradient and logits of plain loops to 1e-5") {
  const kernels::transformer_config config{.layers = 3, .heads = 2, .dim = 32, .context = 16};
  for (const auto& maxout : {maxout_config{1, 2}, maxout_config{2, 4}, maxout_config{3, 32}}) {
    CAPTURE(maxout.pieces);
    CAPTURE(maxout.group);
    const auto torch = make_transformer(config, maxout).value();
    const auto plain =
        with_bottlenecks(std::make_shared<const decoder>(decoder_of(config)), maxout).value();
    auto parameters = torch->initial_parameters(3);
    auto random = stream(3, "rough");
    for (auto& v : parameters) v += static_cast<float>(0.1 * random.normal());
    // More samples than the libtorch path takes at once.
    constexpr std::size_t samples = transformer_chunk + 3;
    std::vector<token_id> tokens, inputs, targets;
    for (std::size_t i = 0; i < samples * 17; ++i) {
      tokens.push_back(static_cast<token_id>(random.below(256)));
      if (i % 17 != 16) inputs.push_back(tokens.back());
      if (i % 17 != 0) targets.push_back(tokens.back());
    }
    std::vector<std::byte> bytes(tokens.size());
    encode_tokens(tokens, config.vocabulary, bytes);
    const auto layout = layout_of(config, maxout);
    std::vector<float> ours(parameters.size()), theirs(parameters.size());
    const auto loss =
        whole_pass(*plain, layout, parameters, {samples, 16}, inputs, targets, ours).value();
    CHECK(torch->accumulate_gradient(parameters, bytes, samples, theirs) ==
          doctest::Approx(loss).epsilon(1e-6));
    CHECK(distance(ours, theirs) < 1e-5);
    // The matrices learn, too.
    for (std::size_t i = kernels::end_of(kernels::layout_of(config)); i < theirs.size(); i += 97)
      CHECK(theirs[i] != 0);
    CHECK(torch->mean_loss(parameters, bytes, samples) * samples ==
          doctest::Approx(loss).epsilon(1e-6));
    const auto prompt = std::span(inputs).first(9);
    CHECK(distance(torch->next_logits(parameters, prompt),
                   whole_logits(*plain, layout, parameters, {1, 9}, prompt).value()) < 1e-5);
  }
}
