// The expert block 'plain': one layer without an activation, y = A x + b. Its parameters are A
// [dim, dim], then b [dim].
#include "kernels/dense.hpp"
#include "scenarios/experts/expert_block_kind.hpp"

namespace extension {
using namespace shoal;
using namespace shoal::scenarios;

using floats = std::span<const float>;

struct plain_block final : learn::expert_block {
  explicit plain_block(std::size_t dim) : n(dim) {}
  std::size_t width() const noexcept override { return n; }
  std::size_t parameter_count() const noexcept override { return n * n + n; }
  std::vector<float> initial_parameters(std::uint64_t seed) const override {
    std::vector<float> out(parameter_count());
    const auto all = std::span(out);
    kernels::initial_linear(seed, 1, n, all.first(n * n), all.subspan(n * n));
    return out;
  }
  result<std::vector<float>> forward(floats parameters, floats x) const override {
    if (!fits(parameters, x)) return failure{"plain: values of another size"};
    std::vector<float> out(x.size());
    kernels::linear(parameters.first(n * n), parameters.subspan(n * n), n, x, out);
    return out;
  }
  result<std::vector<float>> backward(floats parameters, floats x, floats gradient_out,
                                      std::span<float> gradient_sum) const override {
    if (!fits(parameters, x) || gradient_out.size() != x.size() ||
        gradient_sum.size() != parameter_count())
      return failure{"plain: values of another size"};
    std::vector<float> out(x.size());
    kernels::linear_backward(parameters.first(n * n), n, x, gradient_out, gradient_sum.first(n * n),
                             gradient_sum.subspan(n * n), out);
    return out;
  }
  bool fits(floats parameters, floats x) const {
    return parameters.size() == parameter_count() && x.size() % n == 0;
  }
  std::size_t n;
};

std::size_t dim_of(const kernels::transformer_config& trunk) {
  return static_cast<std::size_t>(trunk.dim);
}

expert_block_kind plain_expert() {
  expert_block_kind out;
  out.name = "plain";
  out.meaning = "one layer without an activation. The gate chooses the experts of each token";
  out.parameters = [](const kernels::transformer_config& trunk) {
    return plain_block(dim_of(trunk)).parameter_count();
  };
  out.row_flops = [](const kernels::transformer_config& trunk) {
    return 2.0 * static_cast<double>(trunk.dim * trunk.dim);
  };
  out.make = [](const kernels::transformer_config& trunk) {
    return result<std::shared_ptr<const learn::expert_block>>(
        std::make_shared<const plain_block>(dim_of(trunk)));
  };
  return out;
}
} // namespace extension
