// One layer of kernels/learn/albert_blocks against libtorch's own TransformerEncoderLayer with
// equal weights. That layer has no approximate GELU, so the test gives it one.
#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/transformerlayer.h>
#undef CHECK // libtorch's logging defines one

#include "kernels/base/rng.hpp"
#include "kernels/learn/albert.hpp"
#include "kernels/learn/albert_blocks.hpp"
#include "tests/learn/support/memory_count.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

struct step_cost {
  double seconds = 0;
  std::int64_t peak_bytes = 0, kept_bytes = 0;
  std::vector<float> gradient;
};

/// One gradient over `count` samples of the full length.
step_cost gradient_of(const albert_config& config, bool checkpoint, std::size_t count) {
  const albert model(config, checkpoint);
  const auto parameters = model.initial_parameters(3);
  auto random = stream(4, "full_size");
  std::vector<std::byte> samples(count * model.sample_bytes());
  for (std::size_t s = 0; s < count; ++s) {
    albert_sample one;
    one.first = static_cast<std::size_t>(config.positions / 2);
    for (std::int64_t t = 0; t < config.positions; ++t) {
      const auto token =
          static_cast<token_id>(random.below(static_cast<std::uint64_t>(config.vocabulary)));
      one.tokens.push_back(token);
      one.labels.push_back(random.uniform() < 0.15 ? token : albert_sample::no_label);
    }
    model.format().write(
        one, std::span(samples).subspan(s * model.sample_bytes(), model.sample_bytes()));
  }
  step_cost out{0, 0, 0, std::vector<float>(model.parameter_count())};
  const auto memory = std::make_shared<memory_count>();
  const auto begun = std::chrono::steady_clock::now();
  {
    const c10::DebugInfoGuard counted(c10::DebugInfoKind::PROFILER_STATE, memory);
    model.accumulate_gradient(parameters, samples, count, out.gradient);
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  out.peak_bytes = memory->peak();
  out.kept_bytes = memory->now();
  return out;
}

} // namespace

TEST_CASE("the layer of ALBERT is libtorch's post-norm encoder layer") {
  const albert_config config{.vocabulary = 16,
                             .embedding = 4,
                             .hidden = 24,
                             .layers = 2,
                             .heads = 3,
                             .feed_forward = 40,
                             .positions = 9};
  const auto blocks = make_albert_blocks(config).value();
  const auto tensors = blocks->block_tensors({0, 1}).value();
  std::vector<float> parameters(kernels::end_of(tensors));
  auto random = stream(9, "layer");
  for (auto& value : parameters) value = static_cast<float>(0.4 * random.normal());
  const auto of = [&](const std::string& tail) {
    for (const auto& slot : tensors)
      if (slot.name.ends_with("albert_layers.0." + tail))
        return torch::from_blob(parameters.data() + slot.offset, slot.shape).clone();
    FAIL(tail);
    return torch::Tensor();
  };
  torch::nn::TransformerEncoderLayer theirs(
      torch::nn::TransformerEncoderLayerOptions(24, 3).dim_feedforward(40).dropout(0).activation(
          [](const torch::Tensor& x) {
            return 0.5 * x *
                   (1 + torch::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * torch::pow(x, 3))));
          }));
  theirs->eval();
  {
    torch::NoGradGuard without_gradient;
    const auto joined = [&](const std::string& tail) {
      return torch::cat({of("attention.query." + tail), of("attention.key." + tail),
                         of("attention.value." + tail)});
    };
    theirs->self_attn->in_proj_weight.copy_(joined("weight"));
    theirs->self_attn->in_proj_bias.copy_(joined("bias"));
    const auto linear = [&](torch::nn::Linear& to, const std::string& name) {
      to->weight.copy_(of(name + ".weight"));
      to->bias.copy_(of(name + ".bias"));
    };
    linear(theirs->linear1, "ffn");
    linear(theirs->linear2, "ffn_output");
    theirs->self_attn->out_proj->weight.copy_(of("attention.dense.weight"));
    theirs->self_attn->out_proj->bias.copy_(of("attention.dense.bias"));
    theirs->norm1->weight.copy_(of("attention.LayerNorm.weight"));
    theirs->norm1->bias.copy_(of("attention.LayerNorm.bias"));
    theirs->norm2->weight.copy_(of("full_layer_layer_norm.weight"));
    theirs->norm2->bias.copy_(of("full_layer_layer_norm.bias"));
  }
  const pass_shape shape{4, 9};
  const std::int64_t lengths[] = {9, 5, 1, 8};
  std::vector<float> in(36 * 25);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto token = i / 25;
    in[i] = i % 25 < 24 ? static_cast<float>(random.normal())
            : static_cast<std::int64_t>(token % 9) < lengths[token / 9] ? 1.0F
                                                                        : 0.0F;
  }
  const auto ours = blocks->forward({0, 1}, parameters, shape, in).value();
  const auto input = torch::from_blob(in.data(), {4, 9, 25});
  const auto absent = input.select(2, 24) == 0;
  const auto x = input.narrow(2, 0, 24).transpose(0, 1).contiguous().set_requires_grad(true);
  const auto out = theirs->forward(x, {}, absent);
  const auto compare = [&](const torch::Tensor& wanted, const std::vector<float>& found) {
    const auto seen = wanted.detach().transpose(0, 1).contiguous();
    double most = 0, scale = 1;
    for (std::int64_t s = 0; s < 4; ++s)
      for (std::int64_t t = 0; t < lengths[s]; ++t)
        for (std::int64_t i = 0; i < 24; ++i) {
          const auto at = s * 9 + t;
          const double value = seen.data_ptr<float>()[at * 24 + i];
          scale = std::max(scale, std::abs(value));
          most = std::max(most, std::abs(value - found[static_cast<std::size_t>(at * 25 + i)]));
        }
    CHECK(most <= 1e-5 * scale);
  };
  compare(out, ours);
  // The gradient of a weighted sum of the tokens that are present.
  std::vector<float> upstream(in.size());
  for (std::size_t i = 0; i < in.size(); ++i)
    if (i % 25 < 24 && in[i / 25 * 25 + 24] == 1.0F)
      upstream[i] = static_cast<float>(random.normal());
  std::vector<float> sum(parameters.size());
  const auto back = blocks->backward({0, 1}, parameters, shape, in, upstream, sum).value();
  out.backward(
      torch::from_blob(upstream.data(), {4, 9, 25}).narrow(2, 0, 24).transpose(0, 1).contiguous());
  compare(x.grad(), back);
  for (const auto& slot : tensors)
    if (slot.name.ends_with("0.ffn.weight")) {
      const auto wanted = theirs->linear1->weight.grad();
      const auto found = torch::from_blob(sum.data() + slot.offset, slot.shape);
      CHECK((wanted - found).abs().max().item<double>() <= 2e-5);
    }
}

TEST_CASE("with checkpoints the gradient of a deep ALBERT takes a fraction of the memory") {
  const albert_config deep{.vocabulary = 300,
                           .embedding = 16,
                           .hidden = 64,
                           .layers = 12,
                           .heads = 4,
                           .feed_forward = 256,
                           .positions = 64};
  const auto whole = gradient_of(deep, false, 8), by_layer = gradient_of(deep, true, 8);
  MESSAGE("at most " << by_layer.peak_bytes << " bytes, without checkpoints " << whole.peak_bytes);
  CHECK(by_layer.peak_bytes < 0.35 * static_cast<double>(whole.peak_bytes));
  CHECK(by_layer.kept_bytes == 0);
  CHECK(by_layer.gradient == whole.gradient);
}

TEST_CASE("a sample of ALBERT-large has a gradient with and without checkpoints") {
  SHOAL_NIGHTLY();
  const albert_config large;
  const auto whole = gradient_of(large, false, 1), by_layer = gradient_of(large, true, 1);
  MESSAGE("a sample of 512 tokens on one core: " << whole.seconds << " s and " << whole.peak_bytes
                                                 << " bytes, with checkpoints " << by_layer.seconds
                                                 << " s and " << by_layer.peak_bytes << " bytes");
  CHECK(by_layer.peak_bytes < 0.35 * static_cast<double>(whole.peak_bytes));
  CHECK(by_layer.gradient == whole.gradient);
}
