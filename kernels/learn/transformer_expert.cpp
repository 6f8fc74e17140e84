#include "kernels/learn/transformer_expert.hpp"

#include "kernels/learn/transformer_blocks.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace shoal::learn {

namespace {

using blocks_ptr = std::shared_ptr<const layered_model>;

class transformer_expert final : public expert_block {
public:
  transformer_expert(const kernels::transformer_config& config, blocks_ptr blocks)
      : config_(config), blocks_(std::move(blocks)),
        tensors_(blocks_->block_tensors(only).value()) {}

  std::size_t width() const noexcept override {
    return static_cast<std::size_t>(config_.context * config_.dim);
  }
  std::size_t parameter_count() const noexcept override { return kernels::end_of(tensors_); }
  std::vector<float> initial_parameters(std::uint64_t seed) const override {
    return gather(kernels::layout_of(config_), kernels::initial_parameters(config_, seed), tensors_)
        .value();
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

} // namespace

result<std::shared_ptr<const expert_block>>
make_transformer_expert(const kernels::transformer_config& config) {
  auto one = config;
  one.layers = 1;
  auto blocks = make_transformer_blocks(one);
  if (!blocks) return failure{blocks.error()};
  return std::shared_ptr<const expert_block>(
      std::make_shared<const transformer_expert>(one, blocks_ptr(std::move(*blocks))));
}

} // namespace shoal::learn
