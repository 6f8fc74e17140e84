#include "kernels/learn/transformer_blocks.hpp"

#include "kernels/learn/checked_layers.hpp"
#include "kernels/learn/torch_loader.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shoal::learn {

namespace {

using slots = std::vector<kernels::tensor_slot>;

constexpr std::size_t tensors_of_layer = 6; // layout.hpp

class transformer_blocks final : public checked_layers {
public:
  transformer_blocks(const kernels::transformer_config& config, bool checkpoint)
      : config_(config), layout_(layout_of(config)),
        math_(make_transformer_math({config, checkpoint, layout_})) {}

  std::int64_t layers() const noexcept override { return config_.layers; }
  std::int64_t vocabulary() const noexcept override { return config_.vocabulary; }
  std::int64_t context() const noexcept override { return config_.context; }
  std::size_t width() const noexcept override { return static_cast<std::size_t>(config_.dim); }

  slots embedding_tensors() const override { return without_gaps({layout_.front()}); }
  slots head_tensors() const override { return without_gaps({layout_.front(), layout_.back()}); }

  result<slots> block_tensors(layer_range block) const override {
    if (const auto check = argument_check().layers(block, layers()); !check.ok())
      return check.why();
    return without_gaps(
        {layout_.begin() + first_tensor(block.first), layout_.begin() + first_tensor(block.last)});
  }

  result<std::vector<float>> logits(std::span<const float> parameters, pass_shape shape,
                                    std::span<const float> in) const override {
    if (const auto check = check_head(parameters, shape, in); !check.ok()) return check.why();
    return guarded([&] {
      std::vector<float> out(static_cast<std::size_t>(shape.samples * vocabulary()));
      math_->logits(parameters, shape, in, out);
      return out;
    });
  }

private:
  void check_targets(std::span<const token_id> targets, pass_shape,
                     argument_check& check) const override {
    check.tokens(targets, vocabulary());
  }
  void compute_embed(std::span<const float> parameters, pass_shape,
                     std::span<const token_id> tokens, std::span<float> out) const override {
    math_->embed(parameters, tokens, out);
  }
  void compute_embed_backward(std::span<const float>, pass_shape, std::span<const token_id> tokens,
                              std::span<const float> gradient_out,
                              std::span<float> gradient_sum) const override {
    math_->embed_backward(tokens, gradient_out, gradient_sum);
  }
  void compute_forward(layer_range block, std::span<const float> parameters, pass_shape shape,
                       std::span<const float> in, std::span<float> out) const override {
    math_->forward(block, parameters, shape, in, out);
  }
  void compute_backward(layer_range block, std::span<const float> parameters, pass_shape shape,
                        std::span<const float> in, std::span<const float> gradient_out,
                        std::span<float> out, std::span<float> gradient_sum) const override {
    math_->backward(block, parameters, shape, in, gradient_out, out, gradient_sum);
  }
  double compute_loss(std::span<const float> parameters, pass_shape shape,
                      std::span<const float> in, std::span<const token_id> targets) const override {
    return math_->loss(parameters, shape, in, targets);
  }
  double compute_loss_backward(std::span<const float> parameters, pass_shape shape,
                               std::span<const float> in, std::span<const token_id> targets,
                               std::span<float> out, std::span<float> gradient_sum) const override {
    return math_->loss_backward(parameters, shape, in, targets, out, gradient_sum);
  }

  static std::ptrdiff_t first_tensor(std::int64_t layer) {
    return 1 + static_cast<std::ptrdiff_t>(tensors_of_layer) * layer;
  }

  kernels::transformer_config config_;
  slots layout_;
  std::shared_ptr<const transformer_math> math_;
};

} // namespace

result<std::unique_ptr<const layered_model>>
make_transformer_blocks(const kernels::transformer_config& config, bool checkpoint) {
  if (auto valid = validate(config); !valid) return failure{valid.error()};
  if (auto loaded = load_torch(); !loaded) return failure{loaded.error()};
  return std::unique_ptr<const layered_model>(
      std::make_unique<const transformer_blocks>(config, checkpoint));
}

} // namespace shoal::learn
