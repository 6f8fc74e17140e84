#include "kernels/learn/maxout_transformer.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/maxout_model.hpp"
#include "kernels/learn/torch_loader.hpp"
#include "kernels/learn/transformer.hpp"
#include "kernels/learn/transformer_blocks.hpp"
#include "kernels/learn/whole_pass.hpp"

#include <algorithm>
#include <utility>

namespace shoal::learn {

namespace {

class maxout_transformer final : public language_model {
public:
  maxout_transformer(const kernels::transformer_config& config, const maxout_config& maxout,
                     std::shared_ptr<const layered_model> pieces)
      : config_(config), maxout_(maxout), layout_(layout_of(config, maxout)),
        pieces_(std::move(pieces)) {}

  std::size_t parameter_count() const noexcept override { return kernels::end_of(layout_); }
  const std::vector<kernels::tensor_slot>& layout() const noexcept override { return layout_; }
  std::int64_t vocabulary() const noexcept override { return config_.vocabulary; }
  std::size_t context() const noexcept override {
    return static_cast<std::size_t>(config_.context);
  }
  std::size_t sample_bytes() const noexcept override {
    return (context() + 1) * token_bytes(config_.vocabulary);
  }
  result<void> check_samples(std::span<const std::byte> samples) const override {
    if (samples.size() % sample_bytes() != 0)
      return failure{"samples: " + std::to_string(samples.size()) + " bytes are no samples of " +
                     std::to_string(sample_bytes()) + " each"};
    return check_tokens(samples, config_.vocabulary);
  }
  std::vector<float> initial_parameters(std::uint64_t seed) const override {
    return learn::initial_parameters(config_, maxout_, seed);
  }

  double accumulate_gradient(std::span<const float> parameters, std::span<const std::byte> samples,
                             std::size_t count, std::span<float> gradient_sum) const override {
    SHOAL_CHECK(gradient_sum.size() == parameter_count(), "the gradient has the model's size");
    return sum_of_losses(parameters, samples, count, gradient_sum);
  }
  double mean_loss(std::span<const float> parameters, std::span<const std::byte> samples,
                   std::size_t count) const override {
    return count == 0 ? 0
                      : sum_of_losses(parameters, samples, count, {}) / static_cast<double>(count);
  }
  std::vector<float> next_logits(std::span<const float> parameters,
                                 std::span<const token_id> prompt) const override {
    SHOAL_CHECK(!prompt.empty(), "a prediction needs at least one token before it");
    const auto seen = prompt.last(std::min(prompt.size(), context()));
    auto out = whole_logits(*pieces_, layout_, parameters,
                            {1, static_cast<std::int64_t>(seen.size())}, seen);
    SHOAL_CHECK(out.ok(), "the caller gives the model's parameters, and tokens that it knows");
    return std::move(*out);
  }

private:
  /// In chunks of transformer_chunk samples.
  double sum_of_losses(std::span<const float> parameters, std::span<const std::byte> samples,
                       std::size_t count, std::span<float> gradient_sum) const {
    SHOAL_CHECK(samples.size() == count * sample_bytes(), "a sample is context + 1 tokens");
    const auto of_sample = context() + 1;
    double total = 0;
    for (std::size_t first = 0; first < count; first += transformer_chunk) {
      const auto now = std::min(transformer_chunk, count - first);
      std::vector<token_id> tokens(now * of_sample), inputs, targets;
      decode_tokens(samples.subspan(first * sample_bytes(), now * sample_bytes()),
                    config_.vocabulary, tokens);
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (i % of_sample != context()) inputs.push_back(tokens[i]);
        if (i % of_sample != 0) targets.push_back(tokens[i]);
      }
      const auto loss = whole_pass(*pieces_, layout_, parameters,
                                   {static_cast<std::int64_t>(now), config_.context}, inputs,
                                   targets, gradient_sum);
      SHOAL_CHECK(loss.ok(), "samples of other hosts are checked before they are used");
      total += *loss;
    }
    return total;
  }

  kernels::transformer_config config_;
  maxout_config maxout_;
  std::vector<kernels::tensor_slot> layout_;
  std::shared_ptr<const layered_model> pieces_;
};

} // namespace

result<std::unique_ptr<const language_model>>
make_transformer(const kernels::transformer_config& config, const maxout_config& maxout,
                 bool checkpoint) {
  if (auto valid = kernels::validate(config); !valid) return failure{valid.error()};
  if (auto valid = validate(maxout, config.dim, config.layers); !valid)
    return failure{"model: " + valid.error()};
  if (auto loaded = load_torch(); !loaded) return failure{loaded.error()};
  if (maxout.pieces == 0)
    return std::unique_ptr<const language_model>(
        std::make_unique<const transformer>(config, checkpoint));
  auto blocks = make_transformer_blocks(config, checkpoint);
  if (!blocks) return failure{blocks.error()};
  auto pieces = with_bottlenecks(std::move(*blocks), maxout);
  if (!pieces) return failure{pieces.error()};
  return std::unique_ptr<const language_model>(
      std::make_unique<const maxout_transformer>(config, maxout, std::move(*pieces)));
}

} // namespace shoal::learn
