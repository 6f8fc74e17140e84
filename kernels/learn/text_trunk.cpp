#include "kernels/learn/text_trunk.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/tokens.hpp"
#include "kernels/learn/transformer_blocks.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace shoal::learn {

namespace {

/// The passes of a trunk have the right sizes, so only a lack of memory makes them fail.
class text_trunk final : public network_ends {
public:
  text_trunk(const kernels::transformer_config& config, std::int64_t layers, text_row row,
             std::shared_ptr<const layered_model> model)
      : config_(config), trunk_{0, layers}, row_(row), model_(std::move(model)),
        embedding_(kernels::end_of(model_->embedding_tensors())),
        head_(kernels::end_of(model_->head_tensors())) {
    if (layers > 0) of_layers_ = model_->block_tensors(trunk_).value();
  }

  std::size_t sample_bytes() const noexcept override {
    return static_cast<std::size_t>(config_.context + 1) * token_bytes(config_.vocabulary);
  }
  std::size_t rows_of_sample() const noexcept override {
    return row_ == text_row::token ? static_cast<std::size_t>(config_.context) : 1;
  }
  std::size_t width() const noexcept override {
    return static_cast<std::size_t>(config_.dim) *
           (row_ == text_row::token ? 1 : static_cast<std::size_t>(config_.context));
  }
  /// The tensors of the head, which has the embedding first, then those of the layers.
  std::size_t parameter_count() const noexcept override {
    return head_ + kernels::end_of(of_layers_);
  }
  std::vector<float> initial_parameters(std::uint64_t seed) const override {
    const auto all = kernels::initial_parameters(config_, seed);
    const auto layout = kernels::layout_of(config_);
    auto out = gather(layout, all, model_->head_tensors()).value();
    const auto layers = gather(layout, all, of_layers_).value();
    out.insert(out.end(), layers.begin(), layers.end());
    return out;
  }

  std::vector<float> enter(std::span<const float> parameters,
                           std::span<const std::byte> samples) const override {
    return through_layers(parameters, tokens_of(samples));
  }

  void enter_backward(std::span<const float> parameters, std::span<const std::byte> samples,
                      std::span<const float> gradient,
                      std::span<float> gradient_sum) const override {
    const auto text = tokens_of(samples);
    std::vector<float> of_embedding(gradient.begin(), gradient.end());
    if (trunk_.last > 0) {
      const auto embedded =
          model_->embed(parameters.first(embedding_), text.shape, text.inputs).value();
      of_embedding = model_
                         ->backward(trunk_, parameters.subspan(head_), text.shape, embedded,
                                    gradient, gradient_sum.subspan(head_))
                         .value();
    }
    const auto done = model_->embed_backward(parameters.first(embedding_), text.shape, text.inputs,
                                             of_embedding, gradient_sum.first(embedding_));
    SHOAL_CHECK(done.ok(), "libtorch computes what fits");
  }

  judgement judge(std::span<const float> parameters, std::span<const std::byte> samples,
                  std::span<const float> x) const override {
    const auto text = tokens_of(samples);
    return {model_->loss(parameters.first(head_), text.shape, x, text.targets).value() /
                static_cast<double>(text.shape.samples),
            0};
  }

  judgement leave(std::span<const float> parameters, std::span<const std::byte> samples,
                  std::span<const float> x, std::span<float> gradient_x,
                  std::span<float> gradient_sum) const override {
    const auto text = tokens_of(samples);
    std::vector<float> sum(head_);
    const auto found =
        model_->loss_backward(parameters.first(head_), text.shape, x, text.targets, sum).value();
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

  std::vector<float> through_layers(std::span<const float> parameters, const text& text) const {
    auto x = model_->embed(parameters.first(embedding_), text.shape, text.inputs).value();
    if (trunk_.last == 0) return x;
    return model_->forward(trunk_, parameters.subspan(head_), text.shape, x).value();
  }

  kernels::transformer_config config_;
  layer_range trunk_;
  text_row row_;
  std::shared_ptr<const layered_model> model_;
  std::size_t embedding_, head_;
  std::vector<kernels::tensor_slot> of_layers_;
};

} // namespace

result<std::shared_ptr<const network_ends>>
make_text_trunk(const kernels::transformer_config& config, text_row row) {
  auto model = config;
  model.layers = std::max<std::int64_t>(config.layers, 1); // a transformer has a layer, used or not
  auto made = make_transformer_blocks(model);
  if (!made) return failure{made.error()};
  return std::shared_ptr<const network_ends>(std::make_shared<const text_trunk>(
      model, config.layers, row, std::shared_ptr<const layered_model>(std::move(*made))));
}

} // namespace shoal::learn
