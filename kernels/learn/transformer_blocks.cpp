#include "kernels/learn/transformer_blocks.hpp"

#include "kernels/learn/argument_check.hpp"
#include "kernels/learn/torch_loader.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace shoal::learn {

namespace {

using slots = std::vector<kernels::tensor_slot>;

constexpr std::size_t tensors_of_layer = 6; // layout.hpp

/// The tensors without gaps, with offsets from the first of them.
slots one_behind_the_other(slots of) {
  std::size_t offset = 0;
  for (auto& slot : of) {
    slot.offset = offset;
    offset += slot.size();
  }
  return of;
}

/// The result of `compute`, or the reason why libtorch failed: mostly a lack of memory.
template <class Compute>
auto guarded(Compute compute) -> result<decltype(compute())> {
  try {
    return compute();
  } catch (const std::exception& e) {
    const std::string why = e.what();
    return failure{"layers: libtorch failed: " + why.substr(0, why.find('\n'))};
  }
}

class transformer_blocks final : public layered_model {
public:
  transformer_blocks(const kernels::transformer_config& config, bool checkpoint)
      : config_(config), layout_(layout_of(config)),
        math_(make_transformer_math({config, checkpoint, layout_})) {}

  std::int64_t layers() const noexcept override { return config_.layers; }
  std::int64_t vocabulary() const noexcept override { return config_.vocabulary; }
  std::int64_t context() const noexcept override { return config_.context; }
  std::size_t width() const noexcept override { return static_cast<std::size_t>(config_.dim); }

  slots embedding_tensors() const override { return one_behind_the_other({layout_.front()}); }
  slots head_tensors() const override {
    return one_behind_the_other({layout_.front(), layout_.back()});
  }

  result<slots> block_tensors(layer_range block) const override {
    if (const auto check = argument_check().layers(block, layers()); !check.ok())
      return check.why();
    return one_behind_the_other(
        {layout_.begin() + first_tensor(block.first), layout_.begin() + first_tensor(block.last)});
  }

  result<std::vector<float>> embed(std::span<const float> parameters, pass_shape shape,
                                   std::span<const token_id> tokens) const override {
    if (const auto check = input(parameters, shape, tokens); !check.ok()) return check.why();
    return guarded([&] {
      std::vector<float> out(activations(shape));
      math_->embed(parameters, tokens, out);
      return out;
    });
  }

  result<void> embed_backward(std::span<const float> parameters, pass_shape shape,
                              std::span<const token_id> tokens, std::span<const float> gradient_out,
                              std::span<float> gradient_sum) const override {
    auto check = input(parameters, shape, tokens);
    if (check.ok())
      check.size("gradient of the activations", gradient_out.size(), activations(shape))
          .size("sum", gradient_sum.size(), parameters.size());
    if (!check.ok()) return check.why();
    const auto done = guarded([&] {
      math_->embed_backward(tokens, gradient_out, gradient_sum);
      return true;
    });
    return done.ok() ? result<void>{} : failure{done.error()};
  }

  result<std::vector<float>> forward(layer_range block, std::span<const float> parameters,
                                     pass_shape shape, std::span<const float> in) const override {
    if (const auto check = between(block, parameters, shape, in); !check.ok()) return check.why();
    return guarded([&] {
      std::vector<float> out(in.size());
      math_->forward(block, parameters, shape, in, out);
      return out;
    });
  }

  result<std::vector<float>> backward(layer_range block, std::span<const float> parameters,
                                      pass_shape shape, std::span<const float> in,
                                      std::span<const float> gradient_out,
                                      std::span<float> gradient_sum) const override {
    auto check = between(block, parameters, shape, in);
    check.size("gradient of the activations", gradient_out.size(), in.size())
        .size("sum", gradient_sum.size(), parameters.size());
    if (!check.ok()) return check.why();
    return guarded([&] {
      std::vector<float> gradient_in(in.size());
      math_->backward(block, parameters, shape, in, gradient_out, gradient_in, gradient_sum);
      return gradient_in;
    });
  }

  result<double> loss(std::span<const float> parameters, pass_shape shape,
                      std::span<const float> in, std::span<const token_id> targets) const override {
    auto check = end(parameters, shape, in);
    if (check.ok())
      check.size("list of targets", targets.size(), shape.tokens()).tokens(targets, vocabulary());
    if (!check.ok()) return check.why();
    return guarded([&] { return math_->loss(parameters, shape, in, targets); });
  }

  result<head_gradient> loss_backward(std::span<const float> parameters, pass_shape shape,
                                      std::span<const float> in, std::span<const token_id> targets,
                                      std::span<float> gradient_sum) const override {
    auto check = end(parameters, shape, in);
    if (check.ok())
      check.size("list of targets", targets.size(), shape.tokens())
          .tokens(targets, vocabulary())
          .size("sum", gradient_sum.size(), parameters.size());
    if (!check.ok()) return check.why();
    return guarded([&] {
      head_gradient out{0, std::vector<float>(in.size())};
      out.loss =
          math_->loss_backward(parameters, shape, in, targets, out.gradient_in, gradient_sum);
      return out;
    });
  }

  result<std::vector<float>> logits(std::span<const float> parameters, pass_shape shape,
                                    std::span<const float> in) const override {
    if (const auto check = end(parameters, shape, in); !check.ok()) return check.why();
    return guarded([&] {
      std::vector<float> out(static_cast<std::size_t>(shape.samples * vocabulary()));
      math_->logits(parameters, shape, in, out);
      return out;
    });
  }

private:
  /// The largest number of samples in a pass. Sizes of activations stay far below 2^63.
  static constexpr std::int64_t most_samples = std::int64_t{1} << 24;

  static std::ptrdiff_t first_tensor(std::int64_t layer) {
    return 1 + static_cast<std::ptrdiff_t>(tensors_of_layer) * layer;
  }
  std::size_t activations(pass_shape shape) const { return shape.tokens() * width(); }

  argument_check shaped(pass_shape shape) const {
    return argument_check()
        .range("samples", shape.samples, most_samples)
        .range("time", shape.time, config_.context);
  }

  argument_check input(std::span<const float> parameters, pass_shape shape,
                       std::span<const token_id> tokens) const {
    auto check = shaped(shape);
    if (check.ok())
      check.size("embedding", parameters.size(), layout_.front().size())
          .size("list of tokens", tokens.size(), shape.tokens())
          .tokens(tokens, vocabulary());
    return check;
  }

  argument_check between(layer_range block, std::span<const float> parameters, pass_shape shape,
                         std::span<const float> in) const {
    auto check = shaped(shape).layers(block, layers());
    if (check.ok())
      check
          .size("vector of the block's parameters", parameters.size(),
                kernels::end_of(*block_tensors(block)))
          .size("vector of activations", in.size(), activations(shape));
    return check;
  }

  argument_check end(std::span<const float> parameters, pass_shape shape,
                     std::span<const float> in) const {
    auto check = shaped(shape);
    if (check.ok())
      check
          .size("vector of the head's parameters", parameters.size(),
                kernels::end_of(head_tensors()))
          .size("vector of activations", in.size(), activations(shape));
    return check;
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
