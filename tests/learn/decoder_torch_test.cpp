// kernels/learn/decoder beside libtorch: both compute the byte transformer.
#include "kernels/base/rng.hpp"
#include "kernels/learn/decoder.hpp"
#include "kernels/learn/transformer.hpp"
#include "kernels/learn/transformer_blocks.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

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
