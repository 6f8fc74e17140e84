// A model in pieces that checks its arguments before it computes, and catches what libtorch throws.
// The models that compute with libtorch derive from it.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/argument_check.hpp"
#include "kernels/learn/layered_model.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

namespace shoal::learn {

class checked_layers : public layered_model {
public:
  result<std::vector<float>> embed(std::span<const float> parameters, pass_shape shape,
                                   std::span<const token_id> tokens) const final;
  result<void> embed_backward(std::span<const float> parameters, pass_shape shape,
                              std::span<const token_id> tokens, std::span<const float> gradient_out,
                              std::span<float> gradient_sum) const final;
  result<std::vector<float>> forward(layer_range block, std::span<const float> parameters,
                                     pass_shape shape, std::span<const float> in) const final;
  result<std::vector<float>> backward(layer_range block, std::span<const float> parameters,
                                      pass_shape shape, std::span<const float> in,
                                      std::span<const float> gradient_out,
                                      std::span<float> gradient_sum) const final;
  result<double> loss(std::span<const float> parameters, pass_shape shape,
                      std::span<const float> in, std::span<const token_id> targets) const final;
  result<head_gradient> loss_backward(std::span<const float> parameters, pass_shape shape,
                                      std::span<const float> in, std::span<const token_id> targets,
                                      std::span<float> gradient_sum) const final;

protected:
  /// The shape, and the sizes of the head's parameters and of its input.
  argument_check check_head(std::span<const float> parameters, pass_shape shape,
                            std::span<const float> in) const;

  /// The result of `compute`, or the reason why libtorch failed: mostly a lack of memory.
  template <class Compute>
  static auto guarded(Compute compute) -> result<decltype(compute())> {
    try {
      return compute();
    } catch (const std::exception& e) {
      const std::string why = e.what();
      return failure{"layers: libtorch failed: " + why.substr(0, why.find('\n'))};
    }
  }

private:
  /// Checks the values of the targets [samples * time], whose number is right.
  virtual void check_targets(std::span<const token_id> targets, pass_shape shape,
                             argument_check& check) const = 0;
  /// The functions of layered_model, with arguments that fit. They may throw, and they set `out`,
  /// which has the size of the result.
  virtual void compute_embed(std::span<const float> parameters, pass_shape shape,
                             std::span<const token_id> tokens, std::span<float> out) const = 0;
  virtual void compute_embed_backward(std::span<const float> parameters, pass_shape shape,
                                      std::span<const token_id> tokens,
                                      std::span<const float> gradient_out,
                                      std::span<float> gradient_sum) const = 0;
  virtual void compute_forward(layer_range block, std::span<const float> parameters,
                               pass_shape shape, std::span<const float> in,
                               std::span<float> out) const = 0;
  virtual void compute_backward(layer_range block, std::span<const float> parameters,
                                pass_shape shape, std::span<const float> in,
                                std::span<const float> gradient_out, std::span<float> out,
                                std::span<float> gradient_sum) const = 0;
  virtual double compute_loss(std::span<const float> parameters, pass_shape shape,
                              std::span<const float> in,
                              std::span<const token_id> targets) const = 0;
  virtual double compute_loss_backward(std::span<const float> parameters, pass_shape shape,
                                       std::span<const float> in, std::span<const token_id> targets,
                                       std::span<float> out,
                                       std::span<float> gradient_sum) const = 0;

  std::size_t activations(pass_shape shape) const { return shape.tokens() * width(); }
  argument_check check_shape(pass_shape shape) const;
  argument_check check_input(std::span<const float> parameters, pass_shape shape,
                             std::span<const token_id> tokens) const;
  argument_check check_block(layer_range block, std::span<const float> parameters, pass_shape shape,
                             std::span<const float> in) const;
  argument_check check_loss(std::span<const float> parameters, pass_shape shape,
                            std::span<const float> in, std::span<const token_id> targets) const;
};

} // namespace shoal::learn
