#include "kernels/learn/albert_blocks.hpp"

#include "kernels/learn/checked_layers.hpp"
#include "kernels/learn/torch_loader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace shoal::learn {

namespace {

using slots = std::vector<kernels::tensor_slot>;

class albert_blocks final : public checked_layers {
public:
  albert_blocks(const albert_config& config, bool checkpoint)
      : config_(config), layout_(albert_layout(config)),
        math_(make_albert_math({config, checkpoint, layout_})) {}

  std::int64_t layers() const noexcept override { return config_.layers; }
  std::int64_t vocabulary() const noexcept override { return 2 * config_.vocabulary + 1; }
  std::int64_t context() const noexcept override { return config_.positions; }
  std::size_t width() const noexcept override {
    return static_cast<std::size_t>(config_.hidden) + 1;
  }

  slots embedding_tensors() const override {
    return without_gaps({layout_.begin(), layout_.begin() + layer_begin});
  }
  result<slots> block_tensors(layer_range block) const override {
    if (const auto check = argument_check().layers(block, layers()); !check.ok())
      return check.why();
    return without_gaps({layout_.begin() + layer_begin, layout_.begin() + head_begin});
  }
  slots head_tensors() const override {
    slots out{layout_.front()};
    out.insert(out.end(), layout_.begin() + head_begin, layout_.end());
    return without_gaps(std::move(out));
  }

  result<std::vector<float>> logits(std::span<const float>, pass_shape,
                                    std::span<const float>) const override {
    return failure{"layers: albert predicts masked tokens, and no next token"};
  }

private:
  static constexpr std::ptrdiff_t layer_begin = albert_embedding_tensors;
  static constexpr std::ptrdiff_t head_begin = layer_begin + albert_layer_tensors;

  /// The input of the embedding, in the form of albert_math.
  class embedding_input {
  public:
    embedding_input(std::span<const token_id> packed, std::int64_t vocabulary) {
      for (const auto token : packed) {
        const bool absent = token == 2 * vocabulary;
        tokens_.push_back(absent ? albert_padding : token % vocabulary);
        segments_.push_back(absent ? 0 : token / vocabulary);
        present_.push_back(absent ? 0.0F : 1.0F);
      }
    }
    albert_input of(pass_shape shape) const { return {shape, tokens_, segments_, present_}; }

  private:
    std::vector<token_id> tokens_, segments_;
    std::vector<float> present_;
  };

  /// The targets, in the form of albert_math.
  class head_targets {
  public:
    head_targets(std::span<const token_id> targets, pass_shape shape, std::int64_t vocabulary) {
      const auto time = static_cast<std::size_t>(shape.time);
      for (std::size_t first = 0; first < targets.size(); first += time) {
        if (targets[first] > vocabulary) classes_.push_back(targets[first] - vocabulary - 1);
        const auto before = places_.size();
        for (std::size_t at = first; at < first + time; ++at)
          if (targets[at] < vocabulary) {
            places_.push_back(static_cast<token_id>(at));
            labels_.push_back(targets[at]);
          }
        const auto count = static_cast<double>(places_.size() - before);
        weights_.resize(places_.size(), static_cast<float>(1.0 / count));
      }
    }
    albert_targets of() const { return {places_, labels_, weights_, classes_}; }

  private:
    std::vector<token_id> places_, labels_, classes_;
    std::vector<float> weights_;
  };

  /// Only the first target of a sample may stand for an order.
  void check_targets(std::span<const token_id> targets, pass_shape shape,
                     argument_check& check) const override {
    const auto time = static_cast<std::size_t>(shape.time);
    std::int64_t ordered = 0;
    for (std::size_t first = 0; first < targets.size(); first += time) {
      check.tokens(targets.subspan(first, 1), config_.vocabulary + 3)
          .tokens(targets.subspan(first + 1, time - 1), config_.vocabulary + 1);
      if (targets[first] > config_.vocabulary) ++ordered;
    }
    check.that(
        ordered == 0 || ordered == shape.samples,
        "some samples have a target for their order and others have none; give one to all or "
        "to none");
  }
  void compute_embed(std::span<const float> parameters, pass_shape shape,
                     std::span<const token_id> tokens, std::span<float> out) const override {
    math_->embed(parameters, embedding_input(tokens, config_.vocabulary).of(shape), out);
  }
  void compute_embed_backward(std::span<const float> parameters, pass_shape shape,
                              std::span<const token_id> tokens, std::span<const float> gradient_out,
                              std::span<float> gradient_sum) const override {
    math_->embed_backward(parameters, embedding_input(tokens, config_.vocabulary).of(shape),
                          gradient_out, gradient_sum);
  }
  void compute_forward(layer_range block, std::span<const float> parameters, pass_shape shape,
                       std::span<const float> in, std::span<float> out) const override {
    math_->forward(block.last - block.first, parameters, shape, in, out);
  }
  void compute_backward(layer_range block, std::span<const float> parameters, pass_shape shape,
                        std::span<const float> in, std::span<const float> gradient_out,
                        std::span<float> out, std::span<float> gradient_sum) const override {
    math_->backward(block.last - block.first, parameters, shape, in, gradient_out, out,
                    gradient_sum);
  }
  double compute_loss(std::span<const float> parameters, pass_shape shape,
                      std::span<const float> in, std::span<const token_id> targets) const override {
    const head_targets wanted(targets, shape, config_.vocabulary);
    return math_->loss(parameters, shape, in, wanted.of()).sum();
  }
  double compute_loss_backward(std::span<const float> parameters, pass_shape shape,
                               std::span<const float> in, std::span<const token_id> targets,
                               std::span<float> out, std::span<float> gradient_sum) const override {
    const head_targets wanted(targets, shape, config_.vocabulary);
    return math_->loss_backward(parameters, shape, in, wanted.of(), out, gradient_sum).sum();
  }

  albert_config config_;
  slots layout_;
  std::shared_ptr<const albert_math> math_;
};

} // namespace

result<std::unique_ptr<const layered_model>> make_albert_blocks(const albert_config& config,
                                                                bool checkpoint) {
  if (auto valid = validate(config); !valid) return failure{valid.error()};
  if (config.head != albert_head::pretraining)
    return failure{"layers: only the head for pre-training runs in pieces"};
  if (auto loaded = load_torch(); !loaded) return failure{loaded.error()};
  return std::unique_ptr<const layered_model>(
      std::make_unique<const albert_blocks>(config, checkpoint));
}

albert_piece_batch albert_pieces_of(std::span<const albert_sample> samples, std::int64_t vocabulary,
                                    std::int64_t least_time) {
  auto longest = static_cast<std::size_t>(least_time);
  for (const auto& sample : samples) longest = std::max(longest, sample.tokens.size());
  albert_piece_batch out;
  out.shape = {static_cast<std::int64_t>(samples.size()), static_cast<std::int64_t>(longest)};
  out.inputs.assign(out.shape.tokens(), 2 * vocabulary);
  out.targets.assign(out.shape.tokens(), vocabulary);
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const auto& sample = samples[s];
    for (std::size_t t = 0; t < sample.tokens.size(); ++t) {
      const auto at = s * longest + t;
      out.inputs[at] = sample.tokens[t] + (t < sample.first ? 0 : vocabulary);
      if (sample.labels[t] != albert_sample::no_label) out.targets[at] = sample.labels[t];
    }
    if (sample.order != albert_sample::no_label)
      out.targets[s * longest] = vocabulary + 1 + sample.order;
  }
  return out;
}

} // namespace shoal::learn
