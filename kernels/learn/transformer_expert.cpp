#include "kernels/learn/transformer_expert.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/tokens.hpp"
#include "kernels/learn/transformer_blocks.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace shoal::learn {

namespace {

using blocks_ptr = std::shared_ptr<const layered_model>;

/// Passes of this code have the right sizes, so only a lack of memory makes them fail.
template <class T>
T must(result<T> from) {
  SHOAL_CHECK(from.ok(), "libtorch computes what fits");
  return std::move(*from);
}

class transformer_expert final : public expert_block {
public:
  transformer_expert(const kernels::transformer_config& config, blocks_ptr blocks)
      : config_(config), blocks_(std::move(blocks)), tensors_(must(blocks_->block_tensors(only))) {}

  std::size_t width() const noexcept override {
    return static_cast<std::size_t>(config_.context * config_.dim);
  }
  std::size_t parameter_count() const noexcept override { return kernels::end_of(tensors_); }
  std::vector<float> initial_parameters(std::uint64_t seed) const override {
    return must(
        gather(kernels::layout_of(config_), kernels::initial_parameters(config_, seed), tensors_));
  }

  result<std::vector<float>> forward(std::span<const float> parameters,
                                     std::span<const float> x) const override {
    auto out = blocks_->forward(only, parameters, shape_of(x), x);
    if (out)
      for (std::size_t i = 0; i < x.size(); ++i) (*out)[i] -= x[i];
    return out;
  }

  result<std::vector<float>> backward(std::span<const float> parameters, std::span<const float> x,
                                      std::span<const float> gradient_out,
                                      std::span<float> gradient_sum) const override {
    auto out = blocks_->backward(only, parameters, shape_of(x), x, gradient_out, gradient_sum);
    if (out)
      for (std::size_t i = 0; i < x.size(); ++i) (*out)[i] -= gradient_out[i];
    return out;
  }

private:
  static constexpr layer_range only{0, 1};

  pass_shape shape_of(std::span<const float> x) const {
    return {static_cast<std::int64_t>(x.size() / width()), config_.context};
  }

  kernels::transformer_config config_;
  blocks_ptr blocks_;
  std::vector<kernels::tensor_slot> tensors_;
};

class text_ends final : public network_ends {
public:
  text_ends(const kernels::transformer_config& config, blocks_ptr blocks)
      : config_(config), blocks_(std::move(blocks)),
        embedding_(kernels::end_of(blocks_->embedding_tensors())) {}

  std::size_t sample_bytes() const noexcept override {
    return static_cast<std::size_t>(config_.context + 1) * token_bytes(config_.vocabulary);
  }
  std::size_t width() const noexcept override {
    return static_cast<std::size_t>(config_.context * config_.dim);
  }
  /// The head has the embedding first, so its parameters are all of the ends.
  std::size_t parameter_count() const noexcept override {
    return kernels::end_of(blocks_->head_tensors());
  }
  std::vector<float> initial_parameters(std::uint64_t seed) const override {
    return must(gather(kernels::layout_of(config_), kernels::initial_parameters(config_, seed),
                       blocks_->head_tensors()));
  }

  std::vector<float> enter(std::span<const float> parameters,
                           std::span<const std::byte> samples) const override {
    const auto text = tokens_of(samples);
    return must(blocks_->embed(parameters.first(embedding_), text.shape, text.inputs));
  }
  void enter_backward(std::span<const float> parameters, std::span<const std::byte> samples,
                      std::span<const float> gradient,
                      std::span<float> gradient_sum) const override {
    const auto text = tokens_of(samples);
    const auto done = blocks_->embed_backward(parameters.first(embedding_), text.shape, text.inputs,
                                              gradient, gradient_sum.first(embedding_));
    SHOAL_CHECK(done.ok(), "libtorch computes what fits");
  }

  judgement judge(std::span<const float> parameters, std::span<const std::byte> samples,
                  std::span<const float> x) const override {
    const auto text = tokens_of(samples);
    return {must(blocks_->loss(parameters, text.shape, x, text.targets)) /
                static_cast<double>(text.shape.samples),
            0};
  }

  judgement leave(std::span<const float> parameters, std::span<const std::byte> samples,
                  std::span<const float> x, std::span<float> gradient_x,
                  std::span<float> gradient_sum) const override {
    const auto text = tokens_of(samples);
    std::vector<float> sum(gradient_sum.size());
    const auto found = must(blocks_->loss_backward(parameters, text.shape, x, text.targets, sum));
    // The loss of the pieces is a sum over samples, and this one a mean.
    const auto share = 1 / static_cast<float>(text.shape.samples);
    for (std::size_t i = 0; i < sum.size(); ++i) gradient_sum[i] += share * sum[i];
    for (std::size_t i = 0; i < gradient_x.size(); ++i)
      gradient_x[i] += share * found.gradient_in[i];
    return {found.loss / static_cast<double>(text.shape.samples), 0};
  }

private:
  struct text {
    pass_shape shape;
    std::vector<token_id> inputs, targets;
  };
  text tokens_of(std::span<const std::byte> samples) const {
    const auto count = samples.size() / sample_bytes();
    const auto context = static_cast<std::size_t>(config_.context);
    std::vector<token_id> all(samples.size() / token_bytes(config_.vocabulary));
    decode_tokens(samples, config_.vocabulary, all);
    text out{{static_cast<std::int64_t>(count), config_.context}, {}, {}};
    for (std::size_t n = 0; n < count; ++n)
      for (std::size_t t = 0; t < context; ++t) {
        out.inputs.push_back(all[n * (context + 1) + t]);
        out.targets.push_back(all[n * (context + 1) + t + 1]);
      }
    return out;
  }

  kernels::transformer_config config_;
  blocks_ptr blocks_;
  std::size_t embedding_;
};

result<blocks_ptr> blocks_of(kernels::transformer_config& config) {
  config.layers = 1;
  auto made = make_transformer_blocks(config);
  if (!made) return failure{made.error()};
  return blocks_ptr(std::move(*made));
}

} // namespace

result<std::shared_ptr<const expert_block>>
make_transformer_expert(const kernels::transformer_config& config) {
  auto one = config;
  const auto blocks = blocks_of(one);
  if (!blocks) return failure{blocks.error()};
  return std::shared_ptr<const expert_block>(
      std::make_shared<const transformer_expert>(one, *blocks));
}

result<std::shared_ptr<const network_ends>>
make_text_ends(const kernels::transformer_config& config) {
  auto one = config;
  const auto blocks = blocks_of(one);
  if (!blocks) return failure{blocks.error()};
  return std::shared_ptr<const network_ends>(std::make_shared<const text_ends>(one, *blocks));
}

} // namespace shoal::learn
