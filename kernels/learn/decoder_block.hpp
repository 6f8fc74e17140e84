// The layers of a decoder that one machine holds. Private to decoder.cpp.
#pragma once

#include "kernels/learn/argument_check.hpp"
#include "kernels/learn/decoder_math.hpp"
#include "kernels/learn/served_block.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shoal::learn {

/// The facts that all pieces of a model share.
struct decoder_facts {
  explicit decoder_facts(const decoder_config& from)
      : config(from), layout(layout_of(from)), sizes(from), table(from) {}
  decoder_config config;
  std::vector<kernels::tensor_slot> layout;
  layer_sizes sizes;
  rotary_table table;

  std::size_t context() const { return static_cast<std::size_t>(config.context); }
  /// Checks a pass between layers.
  argument_check pass(pass_shape shape, std::span<const float> in) const {
    auto check = argument_check()
                     .range("samples", shape.samples, std::int64_t{1} << 24)
                     .range("time", shape.time, config.context);
    if (check.ok()) check.size("vector of activations", in.size(), shape.tokens() * sizes.dim);
    return check;
  }
};

class decoder_block final : public served_block {
public:
  /// `parameters`: those of `layers` layers, as many as they need.
  decoder_block(std::shared_ptr<const decoder_facts> facts, std::size_t layers,
                std::span<const float> parameters, weight_format format);

  std::size_t layers() const noexcept override { return weights_.size(); }
  std::size_t width() const noexcept override { return f_->sizes.dim; }
  std::size_t context() const noexcept override { return f_->context(); }
  std::size_t cache_floats() const noexcept override { return 2 * f_->sizes.kv * layers(); }
  std::size_t weight_bytes() const noexcept override;

  result<kv_cache> make_cache(std::size_t samples, std::size_t most) const override;
  result<void> extend(std::span<const cached_step> steps) const override;
  result<std::vector<float>> forward(pass_shape shape, std::span<const float> in) const override;
  result<std::vector<float>> backward(pass_shape shape, std::span<const float> in,
                                      std::span<const float> gradient_out) const override {
    return backward(shape, in, gradient_out, nullptr);
  }
  /// Adds the gradient of the block's parameters to `gradient_parameters` unless that is null.
  result<std::vector<float>> backward(pass_shape shape, std::span<const float> in,
                                      std::span<const float> gradient_out,
                                      float* gradient_parameters) const;

private:
  /// Passes x through all layers; calls before(x) with the input of each.
  template <class Before>
  void run(pass_shape shape, std::vector<float>& x, Before before) const;
  result<void> check(const cached_step& step) const;

  std::shared_ptr<const decoder_facts> f_;
  std::vector<layer_weights> weights_;
};

} // namespace shoal::learn
