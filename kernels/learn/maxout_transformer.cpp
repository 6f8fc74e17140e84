#include "kernels/learn/maxout_transformer.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/maxout_model.hpp"
#include "kernels/learn/sampled_transformer.hpp"
#include "kernels/learn/torch_loader.hpp"
#include "kernels/learn/transformer.hpp"
#include "kernels/learn/transformer_blocks.hpp"
#include "kernels/learn/whole_pass.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace shoal::learn {

namespace {

class maxout_transformer final : public sampled_transformer {
public:
  maxout_transformer(const kernels::transformer_config& config, const maxout_config& maxout,
                     std::shared_ptr<const layered_model> pieces)
      : sampled_transformer(config, layout_of(config, maxout)), maxout_(maxout),
        pieces_(std::move(pieces)) {}

  std::vector<float> initial_parameters(std::uint64_t seed) const override {
    return learn::initial_parameters(config(), maxout_, seed);
  }

private:
  double add_gradient(std::span<const float> parameters, std::span<const token_id> tokens,
                      std::size_t count, std::span<float> gradient_sum) const override {
    std::vector<token_id> inputs, targets;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto place = i % (context() + 1);
      if (place != context()) inputs.push_back(tokens[i]);
      if (place != 0) targets.push_back(tokens[i]);
    }
    const auto loss = whole_pass(*pieces_, layout(), parameters,
                                 {static_cast<std::int64_t>(count), config().context}, inputs,
                                 targets, gradient_sum);
    SHOAL_CHECK(loss.ok(), "the base class has checked all sizes and tokens");
    return *loss;
  }
  double sum_of_losses(std::span<const float> parameters, std::span<const token_id> tokens,
                       std::size_t count) const override {
    return add_gradient(parameters, tokens, count, {}) * static_cast<double>(context());
  }
  std::vector<float> logits_after(std::span<const float> parameters,
                                  std::span<const token_id> prompt) const override {
    auto out = whole_logits(*pieces_, layout(), parameters,
                            {1, static_cast<std::int64_t>(prompt.size())}, prompt);
    SHOAL_CHECK(out.ok(), "the base class has checked all sizes and tokens");
    return std::move(*out);
  }

  maxout_config maxout_;
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
